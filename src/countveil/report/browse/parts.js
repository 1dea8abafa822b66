// Building blocks of the page: elements from text alone, never from markup.
const DATA = JSON.parse(document.getElementById("data").textContent);
const SVG = "http://www.w3.org/2000/svg";
const at = (id) => document.getElementById(id);
const state = { view: "components", fit: 0, kind: 0, component: 0, list: 0, search: "", rowsBy: "", order: "support", members: "top" };

const fitted = () => DATA.fits[state.fit];
const kindOf = (fit = fitted()) => fit.kinds[state.kind];
const capital = (text) => text[0].toUpperCase() + text.slice(1);
for (const fit of DATA.fits) {
  for (const kind of fit.kinds) {
    for (const each of kind.components) {
      each.named = each.name !== "";
      Object.defineProperty(each, "title", { get: () => `${capital(kind.one)} ${each.number}${each.name && `: ${each.name}`}` });
    }
  }
}
const largest = (values) => values.reduce((most, each) => Math.max(most, ...each), 0);

function make(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in node) node[name] = value;
    else node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

const paragraph = (text, className = "") => make("p", { className }, text);
const button = (text, onclick, more = {}) => make("button", { type: "button", onclick, ...more }, text);
const named = (label) => make("bdi", { className: "name" }, label);

// A share in per cent with about two digits, as the printed report has it.
function percent(share) {
  const hundred = 100 * share;
  if (hundred > 0 && hundred < 0.1) return "<0.1%";
  return `${hundred.toFixed(hundred >= 9.95 ? 0 : 1)}%`;
}

function said(values, shown = percent) {
  const [middle, low, high] = values;
  return values.length > 1 ? `${shown(middle)} (${shown(low)} to ${shown(high)})` : shown(middle);
}

function shape(name, className, attributes) {
  const node = document.createElementNS(SVG, name);
  node.setAttribute("class", className);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return node;
}

// A number with its interval on a scale from 0 to the most; the numbers stand beside it as text.
function bar(values, most, className = "") {
  const scale = (value) => Math.min(100, Math.max(0, most > 0 ? (100 * value) / most : 0));
  const [middle, low, high] = values.map(scale);
  const drawn = shape("svg", `bar ${className}`, { viewBox: "0 0 100 9", preserveAspectRatio: "none", "aria-hidden": "true" });
  drawn.append(shape("rect", "track", { width: 100, height: 9 }));
  if (values.length > 1) drawn.append(shape("rect", "range", { x: low, y: 1.5, width: Math.max(high - low, 0.4), height: 6 }));
  drawn.append(shape("rect", "dot", { x: Math.max(middle - 0.6, 0), width: 1.2, height: 9 }));
  return drawn;
}

function line(label, numbers, ...below) {
  const name = typeof label === "string" ? named(label) : label;
  return make("li", {}, make("span", { className: "line" }, name, make("span", { className: "numbers" }, numbers)), ...below);
}

function supportOf(component) {
  if (component.support === null) return "";
  return component.support > 0.9999 ? "in all chains" : `support ${percent(component.support)}`;
}

function choice(id, label, options, value, onchange) {
  const select = make("select", { id, onchange: () => onchange(select.value) },
    ...options.map(([key, text]) => make("option", { value: key, selected: `${key}` === `${value}` }, text)));
  return make("label", {}, `${label} `, select);
}

// What many components are called, with those apart that only some chains found.
function counted(kind) {
  const all = kind.components.length, stable = kind.components.filter((each) => each.stable).length;
  const words = (n) => `${n} ${n === 1 ? kind.one : kind.many}`;
  return stable < all ? `${words(stable)} that most chains found, ${all - stable} that only some found` : words(all);
}

// A field that is searched as it is typed in.
function field(id, label, value, oninput) {
  const input = make("input", { id, type: "search", autocomplete: "off", spellcheck: false, value, oninput: () => oninput(input.value) });
  return make("label", { className: "field" }, `${label} `, input);
}

// Labels that hold a text, those that begin with it first: [places, how many more there are].
function matches(labels, text, most) {
  const wanted = text.trim().toLocaleLowerCase();
  const rank = (label) => (label === wanted ? 0 : label.startsWith(wanted) ? 1 : 2);
  const found = labels.map((label, place) => [label.toLocaleLowerCase(), place]).filter(([label]) => label.includes(wanted));
  found.sort(([one], [other]) => rank(one) - rank(other));
  return [found.slice(0, most).map(([, place]) => place), Math.max(0, found.length - most)];
}

// A CSV file; texts that a spreadsheet would compute are replaced by what makes them harmless.
function csv(rows) {
  const cell = (value) => (typeof value === "string" ? `"${(Object.hasOwn(DATA.cells, value) ? DATA.cells[value] : value).replaceAll('"', '""')}"` : `${value ?? ""}`);
  return rows.map((row) => `${row.map(cell).join(",")}\r\n`).join("");
}

function save(file, text, type) {
  const link = URL.createObjectURL(new Blob([text], { type: `${type};charset=utf-8` }));
  make("a", { href: link, download: file }).click();
  setTimeout(() => URL.revokeObjectURL(link), 60000);
}

function download(name, head, rows) {
  return button("Download CSV", () => {
    save(`${name}.csv`, csv([head, ...rows]), "text/csv");
    at("said").textContent = `${name}.csv: ${rows.length} rows.`;
  }, { className: "download", id: "download" });
}

const ENDS = () => (fitted().noIntervals ? [] : ["lower", "upper"]);
