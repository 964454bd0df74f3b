// The script of every page: sorts and downloads tables, and saves figures. Text is inserted through textContent only.
"use strict";
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const make = (tag, name, text) => {
  const node = document.createElement(tag);
  node.className = name;
  if (text !== undefined) node.textContent = text;
  return node;
};
const space = document.querySelector("svg")?.namespaceURI;
const draw = (tag, attributes, text) => {
  const node = document.createElementNS(space, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (text !== undefined) node.textContent = text;
  return node;
};
const save = (blob, name) => {
  const link = make("a", "");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
};

// Tables: sorted by a click on a heading, downloaded in the order shown.
const raw = (cell) => cell.dataset.v ?? cell.textContent;
for (const table of all("table.sortable")) {
  const body = table.tBodies[0];
  all("th", table).forEach((heading, column) => {
    const numeric = heading.classList.contains("n");
    heading.firstChild.addEventListener("click", () => {
      const down = heading.getAttribute("aria-sort") === "ascending" || (numeric && !heading.hasAttribute("aria-sort"));
      all("th", table).forEach((other) => other.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", down ? "descending" : "ascending");
      const compare = (a, b) => (numeric ? a - b : a.localeCompare(b, undefined, { numeric: true }));
      const key = (row) => (numeric ? Number(raw(row.cells[column])) : raw(row.cells[column]));
      const rows = [...body.rows].map((row) => [key(row), row]);
      rows.sort((a, b) => (down ? -1 : 1) * compare(a[0], b[0]));
      body.append(...rows.map(([, row]) => row));
    });
  });
}
for (const button of all("button.download")) {
  button.addEventListener("click", () => {
    const rows = [...document.getElementById(button.dataset.table).rows];
    const line = (row) => [...row.cells].map((cell) => raw(cell).replace(/[\t\r\n]+/g, " ")).join("\t");
    const text = `${rows.map(line).join("\n")}\n`;
    save(new Blob([text], { type: "text/tab-separated-values" }), `${button.dataset.table.replace("-table", "")}.tsv`);
  });
}

// Buttons that copy text.
for (const button of all("button.copy")) {
  button.addEventListener("click", async () => {
    const source = document.getElementById(button.dataset.copy);
    try {
      await navigator.clipboard.writeText(source.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(source);
      button.textContent = "Selected: press Ctrl+C";
    }
    setTimeout(() => (button.textContent = "Copy"), 2500);
  });
}

// Figures: saved as SVG with inline styles, and as PNG at twice the size; always with the colours of light mode.
{
  const root = document.documentElement;
  const INHERITED = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin", "font-family",
    "font-size", "font-weight", "text-anchor", "paint-order", "visibility"];
  const style = (node, copy, isRoot) => {
    const own = getComputedStyle(node);
    const outer = isRoot ? null : getComputedStyle(node.parentNode);
    for (const name of INHERITED) {
      const value = own.getPropertyValue(name);
      if (isRoot || value !== outer.getPropertyValue(name)) copy.setAttribute(name, value.replaceAll('"', "'").replace(/url\('(.*)'\)/, "url($1)"));
    }
    if (own.opacity !== "1") copy.setAttribute("opacity", own.opacity);
    copy.removeAttribute("class");
    copy.removeAttribute("style");
  };
  const styled = (node, isRoot) => {
    const copy = node.cloneNode(true);
    const copies = [copy, ...copy.querySelectorAll("*")];
    [node, ...node.querySelectorAll("*")].forEach((own, i) => {
      if (own !== node && getComputedStyle(own).display === "none" && own.tagName !== "title") copies[i].remove();
      else style(own, copies[i], isRoot && i === 0);
    });
    return copy;
  };
  // Copies the definitions that are referenced by ID from outside the SVG.
  const gather = (svg) => {
    const text = svg.outerHTML;
    const names = new Set([...text.matchAll(/url\(#([\w-]+)\)|href="#([\w-]+)"/g)].map((found) => found[1] ?? found[2]));
    const defs = draw("defs", {});
    for (const name of names) {
      const own = document.getElementById(name);
      if (own && !svg.contains(own)) defs.append(styled(own, false));
    }
    for (const shape of all("path[id]", defs)) for (const name of INHERITED) shape.removeAttribute(name);
    svg.prepend(defs);
  };
  // A table as SVG: its cells and their text.
  const traced = (table) => {
    const frame = table.getBoundingClientRect();
    const [width, height] = [Math.ceil(frame.width), Math.ceil(frame.height)];
    const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, "font-family": getComputedStyle(table).fontFamily });
    for (const cell of all("th, td", table)) {
      const [box, look] = [cell.getBoundingClientRect(), getComputedStyle(cell)];
      const [x, y] = [box.x - frame.x, box.y - frame.y];
      const rect = { x, y, width: box.width, height: box.height, fill: cell.tagName === "TD" ? look.backgroundColor : "none" };
      if (cell.classList.contains("matched")) Object.assign(rect, { stroke: look.color, "stroke-width": 2 });
      svg.append(draw("rect", rect));
      const words = document.createRange();
      words.selectNodeContents(cell);
      const extent = words.getBoundingClientRect();
      const font = { fill: look.color, "font-size": look.fontSize, "font-weight": look.fontWeight };
      const upright = extent.height > 1.5 * extent.width && cell.querySelector("span");
      const [left, below] = [extent.x - frame.x, extent.bottom - frame.y];
      const at = upright ? { transform: `translate(${left + 0.75 * extent.width} ${below}) rotate(-90)` } : { x: left, y: below - 0.25 * extent.height };
      svg.append(draw("text", { ...at, ...font }, cell.textContent));
    }
    return svg;
  };
  // Draws the legend to the right of a chart.
  const legend = (svg, keys) => {
    const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
    const entries = all(".keys > *, .ramp", keys).filter((key) => key.offsetParent !== null);
    const rows = Math.max(1, Math.floor((height - 20) / 20));
    entries.forEach((key, i) => {
      const [x, y] = [width + 16 + 150 * Math.floor(i / rows), 20 + 20 * (i % rows)];
      const mark = key.querySelector("use");
      const dot = key.querySelector("i");
      const levels = all("i", key);
      if (mark) svg.append(draw("use", { href: mark.getAttribute("href"), fill: getComputedStyle(mark).fill, x, y: y - 4 }));
      else if (levels.length > 1) levels.forEach((level, k) => svg.append(draw("rect", { x: x + 9 * k, y: y - 9, width: 9, height: 11, fill: getComputedStyle(level).backgroundColor })));
      else if (dot) svg.append(draw("circle", { cx: x, cy: y - 4, r: 5, fill: getComputedStyle(dot).backgroundColor }));
      const words = [...key.childNodes].map((node) => node.textContent.trim()).filter(Boolean).join(levels.length > 1 ? " to " : "  ");
      svg.append(draw("text", { x: x + (levels.length > 1 ? 9 * levels.length + 6 : 12), y, "font-size": "12px" }, words));
    });
    if (entries.length) svg.setAttribute("viewBox", `0 0 ${width + 16 + 150 * Math.ceil(entries.length / rows)} ${height}`);
  };
  const light = new CustomEvent("light");
  const plain = (figure) => {
    root.classList.add("light");
    dispatchEvent(light);
    const chart = all(".chart > svg", figure).find((svg) => svg.getClientRects().length);
    const svg = chart ? styled(chart, true) : traced(figure.querySelector("table"));
    const keys = figure.querySelector(".legends");
    if (keys && chart) legend(svg, keys);
    gather(svg);
    const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
    svg.prepend(draw("rect", { width, height, fill: "#fff", stroke: "none" }));
    svg.setAttribute("width", width);
    svg.setAttribute("height", height);
    root.classList.remove("light");
    dispatchEvent(light);
    return { text: new XMLSerializer().serializeToString(svg), width, height };
  };
  const picture = async ({ text, width, height }) => {
    const image = new Image();
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
    await image.decode();
    const canvas = make("canvas", "");
    [canvas.width, canvas.height] = [2 * width, 2 * height];
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    return new Promise((done) => canvas.toBlob(done, "image/png"));
  };
  for (const figure of all("figure[data-name]")) {
    const name = () => `${figure.dataset.name}`;
    const row = make("p", "export");
    const [vector, pixels] = ["SVG", "PNG"].map((kind) => make("button", "download", kind));
    vector.addEventListener("click", () => save(new Blob([`<?xml version="1.0" encoding="UTF-8"?>\n${plain(figure).text}\n`], { type: "image/svg+xml" }), `${name()}.svg`));
    pixels.addEventListener("click", async () => save(await picture(plain(figure)), `${name()}.png`));
    for (const button of [vector, pixels]) {
      button.type = "button";
      button.title = `Save this figure as ${button.textContent}`;
    }
    row.append(vector, pixels);
    figure.append(row);
  }
}

// All details are open in print.
addEventListener("beforeprint", () => all("details").forEach((details) => (details.open = true)));
