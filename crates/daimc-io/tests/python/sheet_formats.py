"""Spreadsheets, as pandas, openpyxl, XlsxWriter and odfpy write them."""

import datetime
import zipfile

import numpy as np
import openpyxl
import pandas as pd
import xlsxwriter
from odf import opendocument, table as odf, text as odf_text


def open_document(path, sheets):
    """Writes an .ods file; rows of cells, of which a number, a text, a truth, a date or None is each."""
    document = opendocument.OpenDocumentSpreadsheet()
    for name, rows in sheets.items():
        sheet = odf.Table(name=name)
        for row in rows:
            line = odf.TableRow()
            for cell in row:
                if isinstance(cell, bool):
                    element = odf.TableCell(valuetype="boolean", booleanvalue=str(cell).lower())
                elif isinstance(cell, float):
                    element = odf.TableCell(valuetype="float", value=repr(cell))
                elif isinstance(cell, datetime.date):
                    element = odf.TableCell(valuetype="date", datevalue=cell.isoformat())
                elif cell is None:
                    element = odf.TableCell()
                else:
                    element = odf.TableCell(valuetype="string")
                    element.addElement(odf_text.P(text=cell))
                line.addElement(element)
            # LibreOffice ends every row so.
            line.addElement(odf.TableCell(numbercolumnsrepeated=16384 - len(row)))
            sheet.addElement(line)
        last = odf.TableRow(numberrowsrepeated=1048576 - len(rows))
        last.addElement(odf.TableCell(numbercolumnsrepeated=16384))
        sheet.addElement(last)
        document.spreadsheet.addElement(sheet)
    document.save(str(path))


def changed(source, path, part, change):
    """A copy of an archive of which one part was changed."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            content = old.read(name)
            new.writestr(name, change(content) if name == part else content)


def write(folder, random, table, error):
    # Excel keeps 15 digits, and so do libraries that write its format.
    values = (random.normal(size=(31, 5)) * 50).round(9)
    values[random.random(values.shape) < 0.2] = np.nan
    values[3, 2] = 1e-7
    ids = [f"s <{i}> & \"co\"" if i % 5 == 0 else f"s{i}" for i in range(31)]
    names = ["a", "b b", "c\"", "d", "e"]
    about = dict(ids=ids, features=names)
    frame = pd.DataFrame(values, index=ids, columns=names)
    for engine in ("openpyxl", "xlsxwriter"):
        frame.to_excel(folder / f"{engine}.xlsx", engine=engine)
        table(f"{engine}.xlsx", values, **about)
    frame.to_excel(folder / "pandas.ods", engine="odf")
    table("pandas.ods", values, **about)

    # Texts in their cells, rows as they come.
    with xlsxwriter.Workbook(folder / "constant.xlsx", dict(constant_memory=True)) as book:
        sheet = book.add_worksheet("data")
        sheet.write_row(0, 0, ["", *names])
        for i, row in enumerate(values):
            sheet.write_string(i + 1, 0, ids[i])
            for j, value in enumerate(row):
                if not np.isnan(value):
                    sheet.write_number(i + 1, j + 1, value)
    table("constant.xlsx", values, variable="data", **about)

    book = openpyxl.Workbook()
    first, second = book.active, book.create_sheet("Proteine µ")
    first.title = "rna"
    for sheet, matrix in ((first, values), (second, -values)):
        # Below empty rows, and with cells that have a style and nothing else.
        for _ in range(2):
            sheet.append([])
        sheet.append(["id", *names, None])
        for i, row in enumerate(matrix):
            sheet.append([ids[i], *(None if np.isnan(v) else float(v) for v in row)])
        sheet["I9"].font = openpyxl.styles.Font(bold=True)
        sheet["C80"].number_format = "0.00"
    second["B4"] = "#N/A"
    second["C4"] = "=1/0"
    book.save(folder / "two.xlsx")
    table("two.xlsx", values, variable="rna", **about)
    other = -values
    other[0, :2] = np.nan
    table("two.xlsx", other, variable="Proteine µ", **about)
    error("two.xlsx", "the sheets 'rna', 'Proteine µ'", "::NAME")
    error("two.xlsx", "no sheet 'x'", "'rna'", variable="x")
    book.remove(second)
    book.create_sheet("empty")
    book.create_chartsheet("chart")
    book.save(folder / "one_filled.xlsx")
    table("one_filled.xlsx", values, **about)

    rows = [["id", *names], *([ids[i], *(None if np.isnan(v) else float(v) for v in row)] for i, row in enumerate(values))]
    open_document(folder / "two.ods", {"leer": [], "rna": rows, "x": [["id", "q"], ["u", 1.5], ["v", 2.5]]})
    table("two.ods", values, variable="rna", **about)
    table("two.ods", [[1.5], [2.5]], variable="X", ids=["u", "v"], features=["q"])
    error("two.ods", "the sheets 'leer', 'rna', 'x'", "::NAME")
    open_document(folder / "one_filled.ods", {"leer": [], "rna": rows})
    table("one_filled.ods", values, **about)

    day = datetime.date(2024, 2, 29)
    for cell, shown in (("oops", "'oops'"), (True, "TRUE"), (day, "2024-02-29")):
        name = type(cell).__name__
        book = openpyxl.Workbook()
        for row in (["id", "x", "y"], ["a", 1.0, 2.0], ["b", 3.0, cell]):
            book.active.append(row)
        book.save(folder / f"{name}.xlsx")
        error(f"{name}.xlsx", f"{name}.xlsx::Sheet, cell C3: ", shown, "feature 'y' of instance 'b'")
        open_document(folder / f"{name}.ods", {"s": [["id", "x", "y"], ["a", 1.0, 2.0], ["b", 3.0, cell]]})
        error(f"{name}.ods", f"{name}.ods::s, cell C3: ", shown if cell is not True else "true")
    for rows, parts in (
        ([["id", "x"], ["a", 1.0], [], ["b", 2.0]], ["row 3", "empty"]),
        ([["id", "x"], ["a", 1.0, 7.0], ["b", 2.0]], ["row 2", "3 cells where the header has 2"]),
        ([["id", "x"], [None, 1.0]], ["cell A2", "the ID is empty"]),
    ):
        book = openpyxl.Workbook()
        for row in rows:
            book.active.append(row)
        file = f"wrong_{'_'.join(parts[0].split())}.xlsx"
        book.save(folder / file)
        error(file, *parts)
    pd.DataFrame().to_excel(folder / "nothing.xlsx")
    error("nothing.xlsx", "empty")

    tiny = pd.DataFrame([[1.0, 2.0], [3.0, 4.0]], index=["a", "b"], columns=["x", "y"])
    tiny.to_excel(folder / "tiny.xlsx", engine="xlsxwriter")
    open_document(folder / "tiny.ods", {"s": [["id", "x"], ["a", 1.0], ["b", 2.0]]})
    # Claims that nothing stands for.
    sheet = "xl/worksheets/sheet1.xml"
    for name, part, change in (
        ("dimension", sheet, lambda xml: xml.replace(b'ref="A1:C3"', b'ref="A1:XFD1048576"')),
        ("unique", "xl/sharedStrings.xml", lambda xml: xml.replace(b'uniqueCount="', b'uniqueCount="99999999999')),
    ):
        changed(folder / "tiny.xlsx", folder / f"{name}.xlsx", part, change)
        table(f"{name}.xlsx", tiny, ids=["a", "b"], features=["x", "y"])
    changed(folder / "tiny.xlsx", folder / "far.xlsx", sheet, lambda xml: xml.replace(b'r="C3"', b'r="XFD3"'))
    error("far.xlsx", "row 3", "16384 cells where the header has 3")
    changed(folder / "tiny.xlsx", folder / "below.xlsx", sheet,
            lambda xml: xml.replace(b'<row r="3"', b'<row r="1048576"'))
    error("below.xlsx", "row 3", "empty")
    changed(folder / "tiny.xlsx", folder / "outside.xlsx", sheet, lambda xml: xml.replace(b'r="C3"', b'r="ZZZZ3"'))
    error("outside.xlsx", "not where it says")
    for name, attribute, reason in (
        ("columns", 'table:number-columns-repeated="99999999999"', "16384 cells"),
        ("rows", 'table:number-rows-repeated="99999999999"', "1048576 rows"),
    ):
        element = b"<table:table-cell" if name == "columns" else b"<table:table-row>"
        repeated = element.rstrip(b">") + b" " + attribute.encode() + (b">" if element.endswith(b">") else b"")
        changed(folder / "tiny.ods", folder / f"repeated_{name}.ods", "content.xml",
                lambda xml: xml.replace(element, repeated, 1))
        error(f"repeated_{name}.ods", reason)
    kinds = pd.DataFrame(dict(sample=["x", "y", "z"], kind=["p", None, "q"]))
    kinds.to_excel(folder / "labels.xlsx", index=False)
    kinds.to_excel(folder / "labels.ods", index=False)
