// Everything that moves: colours of the map, what is under the pointer, the features, sorting, downloads.
// Text reaches the page through textContent only.
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const make = (tag, name, text) => {
  const node = document.createElement(tag);
  node.className = name;
  if (text !== undefined) node.textContent = text;
  return node;
};

// The map.
{
  const { map } = data;
  const svg = document.getElementById("map");
  const points = [...svg.querySelector(".points").children];
  const number = new Map(points.map((point, i) => [point, i]));
  const group = (g) => [`k${g % 10}`, Math.floor(g / 10) % 6];
  const level = (share) => [`q${Math.min(9, Math.floor(share * 10))}`, 0];
  const isNamed = (i) => map.class[i] !== null && map.class[i] < map.classNames.length;
  const looks = {
    cluster: (i) => group(map.cluster[i]),
    confidence: (i) => level(map.confidence[i]),
    views: (i) => level(map.viewCount > 1 ? (map.views[i] - 1) / (map.viewCount - 1) : 1),
    class: (i) => (isNamed(i) ? group(map.class[i]) : ["kx", 0]),
  };
  let by = "cluster";
  let picked = null;

  const paint = () => {
    points.forEach((point, i) => {
      const [name, shape] = looks[by](i);
      const away = picked !== null && map[by][i] !== picked;
      point.setAttribute("class", away ? `${name} away` : name);
      point.setAttribute("href", `#m${shape}`);
    });
    for (const legend of all("[data-legend]")) legend.hidden = legend.dataset.legend !== by;
    for (const key of all("[data-group]")) {
      const here = key.closest("[data-legend]").dataset.legend === by;
      key.setAttribute("aria-pressed", here && picked === Number(key.dataset.group));
    }
    // Numbers of clusters say nothing where colours mean something else.
    svg.querySelector(".names").style.display = by === "cluster" ? "" : "none";
  };
  for (const input of all("input[name=colour]")) {
    input.addEventListener("change", () => {
      by = input.value;
      picked = null;
      paint();
    });
    // A browser that restores a page restores its choices too.
    if (input.checked) by = input.value;
  }
  for (const key of all("[data-group]")) {
    key.addEventListener("click", () => {
      const chosen = Number(key.dataset.group);
      picked = picked === chosen ? null : chosen;
      paint();
    });
  }
  paint();

  const tip = document.getElementById("tip");
  let shown = null;
  const describe = (i) => {
    const lines = [
      ["cluster", map.cluster[i]],
      ["confidence", map.confidence[i].toFixed(2)],
      ["views seen", `${map.views[i]} of ${map.viewCount}`],
    ];
    const signed = (percent) => `${percent < 0 ? "−" : percent > 0 ? "+" : ""}${Math.abs(percent)}%`;
    map.contributions?.[i].forEach((percent, view) => {
      lines.push([map.viewNames[view], percent === null ? "not seen" : `contributes ${signed(percent)}`]);
    });
    if (map.class) {
      const name = map.class[i] === null ? "not known" : map.classNames[map.class[i]] ?? "one of the small classes";
      lines.push(["true class", name]);
    }
    const list = make("dl", "");
    for (const [term, value] of lines) list.append(make("dt", "", term), make("dd", "", value));
    tip.replaceChildren(make("strong", "", map.id[i]), list);
  };
  const show = (i) => {
    if (shown !== null) points[shown].classList.remove("here");
    shown = i;
    tip.hidden = i === null;
    if (i === null) return;
    points[i].classList.add("here");
    describe(i);
    const at = points[i].getBoundingClientRect();
    const room = document.documentElement.clientWidth - tip.offsetWidth - 8;
    tip.style.left = `${Math.max(8, Math.min(at.right + 8, room)) + scrollX}px`;
    tip.style.top = `${at.bottom + 6 + scrollY}px`;
  };
  svg.addEventListener("pointerover", (event) => show(number.get(event.target) ?? null));
  svg.addEventListener("pointerleave", () => show(null));
  svg.addEventListener("blur", () => show(null));
  const order = points.map((_, i) => i).sort((a, b) => points[a].getAttribute("x") - points[b].getAttribute("x"));
  svg.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (event.key === "Escape") show(null);
    if (!step) return;
    event.preventDefault();
    const place = shown === null ? -1 : order.indexOf(shown);
    show(order[(place + step + order.length) % order.length]);
  });
}

// The features of a view and a cluster.
{
  const view = document.getElementById("feature-view");
  const cluster = document.getElementById("feature-cluster");
  const bars = document.getElementById("feature-bars");
  const digits = (value) => (Math.abs(value) < 1e-3 && value !== 0 ? value.toExponential(1) : value.toPrecision(3));
  const draw = () => {
    const { names, all: overall, by } = data.features[view.value];
    const entries = cluster.value < 0 ? overall : by[cluster.value];
    const largest = Math.max(...entries.map(([, value]) => Math.abs(value)), Number.MIN_VALUE);
    const against = entries.some(([, value]) => value < 0);
    const rows = entries.map(([place, value, stability]) => {
      const row = make("div", "bar-row");
      const track = make("span", "track");
      const bar = make("i", value < 0 ? "against" : "for");
      const width = (Math.abs(value) / largest) * (against ? 50 : 100);
      bar.style.width = `${width}%`;
      bar.style.marginLeft = `${against ? (value < 0 ? 50 - width : 50) : 0}%`;
      track.append(bar);
      const name = make("span", "name", names[place]);
      name.title = names[place];
      const share = make("span", "value", stability === undefined ? "" : `${stability}%`);
      row.append(name, track, make("span", "value", digits(value).replace("-", "−")), share);
      return row;
    });
    bars.classList.toggle("both", against);
    bars.replaceChildren(...rows);
  };
  view.addEventListener("change", draw);
  cluster.addEventListener("change", draw);
  draw();
}

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
    const link = make("a", "");
    link.href = URL.createObjectURL(new Blob([text], { type: "text/tab-separated-values" }));
    link.download = `${button.dataset.table.replace("-table", "")}.tsv`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  });
}

// Paper shows everything.
addEventListener("beforeprint", () => all("details").forEach((details) => (details.open = true)));
