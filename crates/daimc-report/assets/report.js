// The interactive parts of the report: the map, single instances, features and their values.
const data = JSON.parse(document.getElementById("data").textContent);
const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
const group = (g) => [`k${g % 10}`, Math.floor(g / 10) % 6];
const signed = (percent) => `${percent < 0 ? "−" : percent > 0 ? "+" : ""}${Math.abs(percent)}%`;
const middle = (text, most) => (text.length > most ? `${text.slice(0, most - Math.floor(most / 2) - 1)}…${text.slice(-Math.floor(most / 2))}` : text);
const digits = (value) => {
  const size = Math.abs(value);
  const text = size !== 0 && (size < 1e-3 || size >= 1e5) ? value.toExponential(1) : String(Number(value.toPrecision(3)));
  return text.replace(/-/g, "−");
};

// The data of an instance.
const about = (() => {
  const { instances } = data;
  const views = instances.viewNames.length;
  const contributions = new Int8Array(bytes(instances.contributions).buffer);
  const className = (i) => (instances.class[i] === null ? "not known" : instances.classNames[instances.class[i]] ?? "one of the small classes");
  return {
    facts: (i) => [
      ["cluster", instances.cluster[i]],
      ["confidence", (instances.confidence[i] / 100).toFixed(2)],
      ["views seen", `${instances.views[i]} of ${views}`],
      ...(instances.class ? [["true class", className(i)]] : []),
    ],
    views: (i) => instances.viewNames.map((name, view) => {
      const percent = contributions[i * views + view];
      return [name, percent === -128 ? null : percent];
    }),
  };
})();
const list = (lines) => {
  const node = make("dl", "");
  for (const [term, value] of lines) node.append(make("dt", "", term), make("dd", "", value));
  return node;
};
const tip = document.getElementById("tip");
const moveTip = (at) => {
  const most = document.documentElement.clientWidth - tip.offsetWidth - 8;
  tip.style.left = `${Math.max(8, Math.min(at.right + 8, most)) + scrollX}px`;
  tip.style.top = `${at.bottom + 6 + scrollY}px`;
};

// The map.
const showOnMap = (() => {
  const { map, instances } = data;
  const svg = document.getElementById("map");
  const points = [...svg.querySelector(".points").children];
  const number = new Map(points.map((point, i) => [point, i]));
  const viewCount = instances.viewNames.length;
  const level = (share) => [`q${Math.min(9, Math.floor(share * 10))}`, 0];
  const value = (by, i) => instances[by][map.at[i]];
  const isNamed = (i) => value("class", i) !== null && value("class", i) < instances.classNames.length;
  const looks = {
    cluster: (i) => group(value("cluster", i)),
    confidence: (i) => level(value("confidence", i) / 100),
    views: (i) => level(viewCount > 1 ? (value("views", i) - 1) / (viewCount - 1) : 1),
    class: (i) => (isNamed(i) ? group(value("class", i)) : ["kx", 0]),
  };
  let by = "cluster";
  let picked = null;

  const paint = () => {
    points.forEach((point, i) => {
      const [name, shape] = looks[by](i);
      const away = picked !== null && value(by, i) !== picked;
      point.setAttribute("class", away ? `${name} away` : name);
      point.setAttribute("href", `#m${shape}`);
    });
    for (const legend of all("[data-legend]")) legend.hidden = legend.dataset.legend !== by;
    for (const key of all("[data-group]")) {
      const here = key.closest("[data-legend]").dataset.legend === by;
      key.setAttribute("aria-pressed", here && picked === Number(key.dataset.group));
    }
    // Numbers of clusters are shown only if points are coloured by cluster.
    svg.querySelector(".names").style.display = by === "cluster" ? "" : "none";
  };
  for (const input of all("input[name=colour]")) {
    input.addEventListener("change", () => {
      by = input.value;
      picked = null;
      paint();
    });
    // A browser that restores a page also restores its inputs.
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

  // The positions of points and names: in the layout of the graph, as drawn, and in the plane of V.
  const names = [...svg.querySelector(".names").children];
  const plane = new Uint16Array(bytes(map.plane).buffer);
  const positions = {
    layout: [points, names].map((nodes) => nodes.map((node) => [node.getAttribute("x"), node.getAttribute("y")])),
    plane: [points.map((_, i) => [plane[2 * i] / 10, plane[2 * i + 1] / 10]), map.names],
  };
  // The points from left to right.
  let order = [];
  const arrange = (by) => {
    [points, names].forEach((nodes, kind) => nodes.forEach((node, i) => {
      const [x, y] = positions[by][kind][i];
      node.setAttribute("x", x);
      node.setAttribute("y", y);
    }));
    for (const part of all("[data-position]")) part.toggleAttribute("hidden", part.dataset.position !== by);
    order = points.map((_, i) => i).sort((a, b) => points[a].getAttribute("x") - points[b].getAttribute("x"));
  };
  for (const input of all("input[name=position]")) {
    input.addEventListener("change", () => arrange(input.value));
    if (input.checked) arrange(input.value);
  }

  let shown = null;
  const describe = (i) => {
    const lines = about.facts(i);
    // More views would fill the screen; the section on single instances lists them.
    if (viewCount <= 10) {
      for (const [name, percent] of about.views(i)) {
        lines.push([middle(name, 40), percent === null ? "missing" : `contributes ${signed(percent)}`]);
      }
    }
    tip.replaceChildren(make("strong", "", instances.id[i]), list(lines));
  };
  const show = (i) => {
    if (shown !== null) points[shown].classList.remove("here");
    shown = i;
    tip.hidden = i === null;
    if (i === null) return;
    points[i].classList.add("here");
    describe(map.at[i]);
    moveTip(points[i].getBoundingClientRect());
  };
  svg.addEventListener("pointerover", (event) => show(number.get(event.target) ?? null));
  svg.addEventListener("pointerleave", () => show(null));
  svg.addEventListener("blur", () => show(null));
  svg.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (event.key === "Escape") show(null);
    if (!step) return;
    event.preventDefault();
    const at = shown === null ? -1 : order.indexOf(shown);
    show(order[(at + step + order.length) % order.length]);
  });
  // Highlights the point of an instance that was looked up, if it is drawn.
  let ringed = null;
  return (instance) => {
    ringed?.classList.remove("here");
    ringed = points[map.at.indexOf(instance)];
    ringed?.classList.add("here");
    return ringed !== undefined;
  };
})();

// Single instances.
{
  const { instances } = data;
  const NEAREST = 8;
  const MATCHES = 12;
  const input = document.getElementById("instance-id");
  const matches = document.getElementById("instance-matches");
  const card = document.getElementById("instance");
  const latent = instances.latent && bytes(instances.latent);
  const columns = latent && latent.length / instances.id.length;
  const nearest = (i) => {
    const distance = (j) => {
      let sum = 0;
      for (let k = 0; k < columns; k++) sum += (latent[i * columns + k] - latent[j * columns + k]) ** 2;
      return sum;
    };
    const others = instances.id.map((_, j) => [j, distance(j)]).filter(([j]) => j !== i);
    return others.sort((a, b) => a[1] - b[1]).slice(0, NEAREST).map(([j]) => j);
  };
  const describe = (i) => {
    const drawn = showOnMap(i);
    const self = make("div", "");
    self.append(make("h3", "", instances.id[i]), list([...about.facts(i), ["on the map", drawn ? "ringed" : "not drawn"]]));
    const views = make("div", "");
    views.append(make("h3", "", "What each view contributes"), list(about.views(i).map(([name, percent]) => [name, percent === null ? "missing" : signed(percent)])));
    const near = make("div", "");
    near.append(make("h3", "", "Nearest in V"));
    if (latent) {
      const names = make("ol", "");
      for (const j of nearest(i)) {
        const button = make("button", "", instances.id[j]);
        button.type = "button";
        button.addEventListener("click", () => choose(j));
        const item = make("li", "");
        item.append(button, make("small", "", ` cluster ${instances.cluster[j]}`));
        names.append(item);
      }
      near.append(names);
    } else {
      near.append(make("p", "note", "V has too many columns to be included in this page."));
    }
    const node = make("div", "card");
    node.append(self, views, near);
    card.replaceChildren(node);
  };
  const choose = (i) => {
    input.value = instances.id[i];
    matches.replaceChildren();
    describe(i);
  };
  const lower = instances.id.map((id) => id.toLowerCase());
  input.addEventListener("input", () => {
    const wanted = input.value.trim().toLowerCase();
    matches.replaceChildren();
    if (!wanted) return;
    const exact = lower.indexOf(wanted);
    if (exact >= 0) describe(exact);
    const found = [];
    for (let i = 0; i < lower.length && found.length <= MATCHES; i++) if (i !== exact && lower[i].includes(wanted)) found.push(i);
    for (const i of found.slice(0, MATCHES)) {
      const button = make("button", "", middle(instances.id[i], 40));
      button.type = "button";
      button.addEventListener("click", () => choose(i));
      matches.append(button);
    }
    if (found.length > MATCHES) matches.append(make("span", "key", "and more"));
    if (exact < 0 && found.length === 0) matches.append(make("span", "key", "This page contains no such ID."));
  });
}

// Features: weights, heat map, and distributions by cluster.
{
  const { features, values } = data;
  const view = document.getElementById("feature-view");
  const cluster = document.getElementById("feature-cluster");
  const bars = document.getElementById("feature-bars");
  const distribution = document.getElementById("distribution");
  const ABSENT = 65535;
  const codes = values.views.map((own) => new Uint16Array(bytes(own.codes).buffer));
  const columns = values.cluster.length;
  const nodes = (tag, attributes, children) => {
    const node = draw(tag, attributes);
    node.append(...children);
    return node;
  };
  const titled = (node, text) => {
    node.append(draw("title", {}, text));
    return node;
  };

  // The values of a feature, with NaN for missing ones; null if the page does not contain the feature.
  const valuesOf = (v, feature) => {
    const own = values.views[v];
    const at = own.features.indexOf(feature);
    if (at < 0) return null;
    const [low, high] = own.ranges[at];
    return [...codes[v].subarray(at * columns, (at + 1) * columns)].map((code) => (code === ABSENT ? NaN : low + ((high - low) * code) / (ABSENT - 1)));
  };

  const ticks = (low, high, wanted) => {
    const rough = (high - low) / wanted;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = power * ([1, 2, 5].find((factor) => factor * power >= rough * (1 - 1e-9)) ?? 10);
    const found = [];
    for (let i = Math.ceil(low / step); i * step <= high + 1e-9 * step; i++) found.push(i * step);
    return found;
  };

  // Draws the distribution of a feature by cluster.
  const distribute = (v, feature) => {
    const [frame, caption, heading] = [".chart", "figcaption", "h3"].map((part) => distribution.querySelector(part));
    const name = features[v].names[feature];
    heading.textContent = `Distribution of ${middle(name, 60)} by cluster`;
    heading.title = name;
    distribution.dataset.name = `distribution-${name.replace(/[^\w.-]+/g, "_").slice(0, 60)}`;
    const found = valuesOf(v, feature);
    for (const row of all(".feature")) row.classList.toggle("chosen", Number(row.dataset.feature) === feature && (row.closest("[data-view]")?.dataset.view ?? view.value) === String(v));
    if (!found) {
      frame.replaceChildren(make("p", "empty", "This page does not contain the values of this feature."));
      caption.textContent = "";
      return;
    }
    const { shown, log } = values.views[v];
    const known = found.filter((value) => !Number.isNaN(value));
    let [low, high] = [Math.min(...known), Math.max(...known)];
    if (!known.length) [low, high] = [0, 1];
    if (low === high) [low, high] = [low - 0.5, high + 0.5];
    const [left, right, top, row, width] = [34, 378, 24, 20, 460];
    const x = (value) => left + ((right - left) * (value - low)) / (high - low);
    const clusters = [...new Set(values.cluster)];
    const height = top + row * clusters.length + 40;
    const grid = draw("g", { class: "grid" });
    let end = -Infinity;
    for (const value of ticks(low, high, 5)) {
      const [at, text] = [x(value), digits(value)];
      grid.append(draw("path", { d: `M${at} ${top}V${height - 36}` }));
      if (at - 4 * text.length > end) {
        grid.append(draw("text", { x: at, y: height - 20, "text-anchor": "middle" }, text));
        end = at + 4 * text.length + 4;
      }
    }
    const parts = [grid, draw("text", { class: "quiet", x: left - 8, y: 14, "text-anchor": "end" }, "k"),
      draw("text", { class: "quiet", x: width - 4, y: 14, "text-anchor": "end" }, "values, missing")];
    clusters.forEach((number, i) => {
      const y = top + row * i + row / 2;
      const members = values.cluster.map((own, j) => [own, j]).filter(([own]) => own === number).map(([, j]) => j);
      const here = members.map((j) => found[j]).filter((value) => !Number.isNaN(value)).sort((a, b) => a - b);
      const colour = `k${number % 10}`;
      parts.push(draw("text", { x: left - 8, y: y + 4, "text-anchor": "end" }, number));
      // A fixed vertical jitter.
      parts.push(nodes("g", { class: "strip" }, here.map((value, j) => draw("circle", { class: colour, cx: x(value).toFixed(1), cy: (y + (((j * 7) % 11) - 5) * 0.9).toFixed(1), r: 1.6 }))));
      if (here.length) {
        const at = (share) => {
          const position = share * (here.length - 1);
          const before = Math.floor(position);
          return here[before] + (position - before) * ((here[before + 1] ?? here[before]) - here[before]);
        };
        const [a, b, c, d, e] = [0.05, 0.25, 0.5, 0.75, 0.95].map(at);
        parts.push(titled(nodes("g", { class: "box" }, [
          draw("path", { class: "whisker", d: `M${x(a)} ${y}H${x(e)}` }),
          draw("rect", { class: colour, x: x(b), y: y - 6, width: Math.max(0.5, x(d) - x(b)), height: 12 }),
          draw("path", { class: "median", d: `M${x(c)} ${y - 7}v14` }),
        ]), `median ${digits(c)}, half from ${digits(b)} to ${digits(d)}, 90% from ${digits(a)} to ${digits(e)}`));
      }
      parts.push(draw("text", { class: "quiet", x: width - 6, y: y + 4, "text-anchor": "end" }, `${here.length}, ${members.length - here.length}`));
    });
    parts.push(draw("text", { class: "axis", x: (left + right) / 2, y: height - 4, "text-anchor": "middle" }, log ? "ln(1 + value)" : "value"));
    const svg = nodes("svg", { id: "distribution-chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Values of ${name} in each cluster` }, parts);
    frame.replaceChildren(svg);
    const unseen = [...shown].filter((flag) => flag === "0").length;
    const missing = found.length - known.length;
    caption.textContent = `Of the ${columns} instances in the heat map ${known.length} have a value; ${unseen} are missing from the view and ${missing - unseen} lack the cell. ` +
      "Boxes span the middle half, whiskers 90%; the line is the median.";
  };
  const choose = (v, feature, from) => {
    distribute(v, feature);
    if (from) distribution.scrollIntoView({ block: "nearest", behavior: "instant" });
  };

  // Draws the weights.
  const weigh = () => {
    const { names, all: overall, by } = features[view.value];
    const entries = cluster.value < 0 ? overall : by[cluster.value];
    const largest = Math.max(...entries.map(([, value]) => Math.abs(value)), Number.MIN_VALUE);
    const against = entries.some(([, value]) => value < 0);
    const stable = entries.some(([, , stability]) => stability !== undefined);
    const [row, width] = [19, 460];
    const shortened = entries.map(([feature]) => middle(names[feature], 22));
    const left = 16 + 7.6 * Math.max(1, ...shortened.map((name) => name.length));
    const right = width - (stable ? 104 : 62);
    const zero = against ? (left + right) / 2 : left;
    const rows = entries.map(([feature, value, stability], i) => {
      const y = 4 + row * i;
      const long = ((right - zero) * Math.abs(value)) / largest;
      const parts = [
        titled(draw("text", { x: left - 8, y: y + 13, "text-anchor": "end" }, shortened[i]), names[feature]),
        draw("rect", { class: value < 0 ? "against" : "k0", x: value < 0 ? zero - long : zero, y: y + 3, width: Math.max(1, long), height: 12, rx: 1.5 }),
        draw("text", { class: "quiet", x: right + 56, y: y + 13, "text-anchor": "end" }, digits(value)),
      ];
      if (stability !== undefined) parts.push(draw("text", { class: "quiet", x: width - 4, y: y + 13, "text-anchor": "end" }, `${stability}%`));
      const line = nodes("g", { class: "feature", "data-feature": feature, tabindex: 0, role: "button" }, parts);
      line.addEventListener("click", () => choose(Number(view.value), feature));
      line.addEventListener("keydown", (event) => {
        if (event.key === "Enter") choose(Number(view.value), feature);
      });
      return line;
    });
    const axis = draw("g", { class: "grid" });
    axis.append(draw("path", { d: `M${zero} 2V${row * entries.length + 6}` }));
    bars.replaceChildren(nodes("svg", { id: "feature-chart", viewBox: `0 0 ${width} ${row * entries.length + 10}`, role: "img", "aria-label": "Features of largest weight" }, [axis, ...rows]));
    if (entries.length) distribute(Number(view.value), entries[0][0]);
  };

  // The heat maps, rendered to images with the colours of light or dark mode.
  const RAMPS = {
    light: { stops: [[33, 102, 172], [146, 197, 222], [247, 247, 247], [244, 165, 130], [178, 24, 43]], absent: [167, 175, 185] },
    dark: { stops: [[116, 184, 240], [45, 100, 155], [26, 32, 40], [160, 70, 50], [245, 150, 115]], absent: [89, 99, 111] },
  };
  const END = 2.5;
  const dark = matchMedia("screen and (prefers-color-scheme: dark)");
  const colour = ({ stops }, z) => {
    const at = ((Math.max(-END, Math.min(END, z)) + END) / (2 * END)) * (stops.length - 1);
    const i = Math.min(stops.length - 2, Math.floor(at));
    return stops[i].map((low, c) => low + (at - i) * (stops[i + 1][c] - low));
  };
  const pixels = (width, height, of) => {
    const canvas = make("canvas", "");
    [canvas.width, canvas.height] = [width, height];
    const context = canvas.getContext("2d");
    const image = context.createImageData(width, height);
    for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) {
      const own = of(x, y);
      if (own) image.data.set([...own, 255], 4 * (y * width + x));
    }
    context.putImageData(image, 0, 0);
    return canvas.toDataURL();
  };
  const scored = new Map();
  const scores = (v, feature) => {
    const key = `${v}/${feature}`;
    if (!scored.has(key)) {
      const own = valuesOf(v, feature);
      const known = own.filter((value) => !Number.isNaN(value));
      const mean = known.reduce((a, b) => a + b, 0) / known.length;
      const deviation = Math.sqrt(known.reduce((a, b) => a + (b - mean) ** 2, 0) / known.length);
      scored.set(key, own.map((value) => (deviation > 0 ? (value - mean) / deviation : value - mean)));
    }
    return scored.get(key);
  };
  const heat = (light = false) => {
    const ramp = RAMPS[dark.matches && !light && !document.documentElement.classList.contains("light") ? "dark" : "light"];
    const image = document.querySelector(`image[data-heat="${view.value}"]`);
    if (!image) return;
    const { order, rows, shown } = values.views[view.value];
    const all = rows.map((feature) => scores(view.value, feature));
    const of = (x, y) => {
      const z = all[y][order[x]];
      return shown[order[x]] === "0" ? null : Number.isNaN(z) ? ramp.absent : colour(ramp, z);
    };
    image.setAttribute("href", pixels(columns, rows.length, of));
    document.querySelector(`image[data-ramp="${view.value}"]`).setAttribute("href", pixels(100, 1, (x) => colour(ramp, ((x + 0.5) / 50 - 1) * END)));
  };
  dark.addEventListener("change", () => heat());
  addEventListener("light", () => heat());
  addEventListener("beforeprint", () => heat(true));
  addEventListener("afterprint", () => heat());
  for (const image of all("image[data-heat]")) {
    const v = Number(image.dataset.heat);
    const { order, rows } = values.views[v];
    const under = (event) => {
      const box = image.getBoundingClientRect();
      const [x, y] = [((event.clientX - box.x) / box.width) * columns, ((event.clientY - box.y) / box.height) * rows.length];
      return [order[Math.min(columns - 1, Math.max(0, Math.floor(x)))], rows[Math.min(rows.length - 1, Math.max(0, Math.floor(y)))]];
    };
    image.addEventListener("click", (event) => choose(v, under(event)[1], image));
    image.addEventListener("pointermove", (event) => {
      const [column, feature] = under(event);
      const value = valuesOf(v, feature)[column];
      const lines = [[middle(features[v].names[feature], 40), Number.isNaN(value) ? "missing" : digits(value)],
        ["z-score", Number.isNaN(value) ? "–" : scores(v, feature)[column].toFixed(2).replace("-", "−")], ["cluster", values.cluster[column]]];
      tip.hidden = false;
      tip.replaceChildren(make("strong", "", values.instance ? data.instances.id[values.instance[column]] : ""), list(lines));
      moveTip({ right: event.clientX, bottom: event.clientY });
    });
    image.addEventListener("pointerleave", () => (tip.hidden = true));
  }
  for (const row of all("#heat-map .feature")) {
    row.addEventListener("click", () => choose(Number(row.closest("[data-view]").dataset.view), Number(row.dataset.feature), row));
  }
  const change = () => {
    for (const chart of all("#heat-map [data-view]")) chart.hidden = chart.dataset.view !== view.value;
    document.getElementById("heat-map").dataset.name = `heat-map-${Number(view.value) + 1}`;
    weigh();
    heat();
  };
  view.addEventListener("change", change);
  cluster.addEventListener("change", weigh);
  change();
}
