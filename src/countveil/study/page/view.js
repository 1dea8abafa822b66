// Building blocks of the page: elements from text alone, never from markup.
const DATA = JSON.parse(document.getElementById("data").textContent);
const at = (id) => document.getElementById(id);

function say(key, values = {}) {
  return DATA.strings[key].replace(/\{([a-z]+)\}/g, (whole, place) => String(values[place] ?? whole));
}

function make(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in node) node[name] = value;
    else node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

// A table in a box that scrolls and can be reached by keyboard; the first column names its row.
function table(caption, heads, rows) {
  const box = make("div", { className: "scroll", tabIndex: 0, role: "region" });
  box.setAttribute("aria-label", caption);
  const head = make("tr", {}, ...heads.map((text) => make("th", { scope: "col" }, text)));
  const body = rows.map(([first, ...cells]) =>
    make("tr", {}, make("th", { scope: "row" }, first), ...cells.map((cell) => make("td", {}, cell))),
  );
  box.append(make("table", {}, make("caption", {}, caption), make("thead", {}, head), make("tbody", {}, ...body)));
  return box;
}

function paragraph(text, className = "") {
  return make("p", { className }, text);
}

// What is one click away.
function folded(summary, ...children) {
  return make("details", {}, make("summary", {}, summary), ...children);
}

function status(text, wrong = false) {
  at("said").className = wrong ? "error" : "";
  at("said").textContent = text;
}

function whenOf(text) {
  return new Date(text).toLocaleString(DATA.strings.language);
}

// Runs what a button does; a refusal is shown, and no button works twice at once. It is not disabled meanwhile,
// which would take the keyboard's focus from it.
function onClick(button, work) {
  button.addEventListener("click", async () => {
    if (button.ariaBusy === "true") return;
    button.ariaBusy = "true";
    status("");
    try {
      await work();
    } catch (error) {
      if (["no_limit", "past_limit", "past_limit_rho", "limit_not_rho"].includes(error.key)) at("limits").open = true;
      if (error instanceof Refused) status(say(error.key, error.values), true);
      else if (error?.name?.endsWith("Error") && error instanceof DOMException) status(say("ledger_failed"), true);
      else status(say("failed", { why: String(error?.message ?? error) }), true);
    } finally {
      button.ariaBusy = "false";
    }
  });
}
