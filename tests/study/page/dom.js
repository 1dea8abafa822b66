// As much of a browser as the page's script uses: elements that hold text alone, and a database in memory.
// Whatever would make markup of text throws.
const TAGS = new Set("div p table caption thead tbody tr th td input select option label span button fieldset legend details summary pre li h3 a".split(" "));

class Element {
  children = [];
  listeners = {};
  parentElement = null;
  checked = false;
  disabled = false;
  open = false;
  files = [];
  className = "";
  tabIndex = -1;
  role = "";
  inputMode = "";
  autocomplete = "";
  scope = "";
  href = "";
  download = "";
  ariaBusy = null;

  constructor(tag, attributes = {}) {
    this.tag = tag;
    this.attributes = attributes;
    this.hidden = "hidden" in attributes;
    this.value = attributes.value ?? "";
    this.id = attributes.id ?? "";
    this.type = attributes.type ?? "";
    this.name = attributes.name ?? "";
  }

  append(...nodes) {
    for (const node of nodes) {
      if (node instanceof Element) node.parentElement = this;
      else if (typeof node !== "string") throw new Error(`not an element and not text: ${typeof node}`);
      this.children.push(node);
    }
  }

  replaceChildren(...nodes) {
    this.children = [];
    this.append(...nodes);
  }

  get textContent() {
    return this.children.map((child) => (typeof child === "string" ? child : child.textContent)).join("");
  }

  set textContent(text) {
    this.children = [String(text)];
  }

  get firstChild() {
    return this.children[0] ?? null;
  }

  hasChildNodes() {
    return this.children.length > 0;
  }

  setAttribute(name, value) {
    if (!/^(aria-label|inputmode)$/.test(name)) throw new Error(`an attribute that the page does not need: ${name}`);
    this.attributes[name] = value;
  }

  addEventListener(kind, listener) {
    (this.listeners[kind] ??= []).push(listener);
  }

  fire(kind) {
    for (const listener of this.listeners[kind] ?? []) listener({ target: this });
  }

  click() {
    if (this.tag === "a" && !this.href.startsWith("blob:")) throw new Error(`a link to ${this.href}`);
    if (!this.disabled) this.fire("click");
  }

  focus() {}

  inside(found = []) {
    for (const child of this.children) {
      if (typeof child === "string") continue;
      found.push(child);
      child.inside(found);
    }
    return found;
  }

  querySelectorAll(selector) {
    const named = /^input\[name=([a-z]+)\](:checked)?$/.exec(selector);
    if (named) return this.inside().filter((e) => e.name === named[1] && (!named[2] || e.checked));
    if (selector === "main > section") return this.inside().filter((e) => e.tag === "section");
    const tags = selector.split(", ");
    return this.inside().filter((e) => tags.includes(e.tag));
  }

  querySelector(selector) {
    return this.querySelectorAll(selector)[0] ?? null;
  }
}

for (const markup of ["innerHTML", "outerHTML", "srcdoc", "insertAdjacentHTML"]) {
  const refuse = () => { throw new Error(`${markup} makes markup of text`); };
  Object.defineProperty(Element.prototype, markup, { set: refuse, get: refuse });
}

// A page's elements from [tag, attributes, children], as the test read them from its HTML.
function built(node) {
  if (typeof node === "string") return node;
  const [tag, attributes, children] = node, element = new Element(tag, attributes);
  element.append(...children.map(built));
  return element;
}

function documentOf(tree) {
  const root = built(tree), written = new Map(root.inside().filter((e) => e.id).map((e) => [e.id, e]));
  const made = (id) => ["made", "end-said"].flatMap((place) => written.get(place).inside()).find((e) => e.id === id);
  return {
    root,
    getElementById: (id) => written.get(id) ?? made(id) ?? null,
    querySelector: (selector) => root.querySelector(selector),
    querySelectorAll: (selector) => root.querySelectorAll(selector),
    createElement: (tag) => {
      if (!TAGS.has(tag)) throw new Error(`an element that the page does not need: ${tag}`);
      return new Element(tag);
    },
  };
}

// Transactions take turns; one is complete when nothing more was asked of it.
class Database {
  constructor() {
    Object.assign(this, { stores: {}, turn: Promise.resolve() });
  }

  createObjectStore(name) {
    this.stores[name] = { rows: new Map(), next: 1 };
    return { createIndex: () => {} };
  }

  transaction() {
    const transaction = { pending: 0, error: null, objectStore: (name) => this.store(transaction, this.stores[name]) };
    const before = this.turn;
    let end;
    this.turn = new Promise((resolve) => { end = resolve; });
    transaction.begun = before;
    transaction.abort = () => { transaction.over = true; transaction.onabort?.(); end(); };
    transaction.settle = () => {
      if (transaction.over || transaction.pending) return;
      transaction.over = true;
      transaction.oncomplete?.();
      end();
    };
    before.then(() => setImmediate(transaction.settle));
    return transaction;
  }

  store(transaction, { rows, ...store }) {
    const self = this;
    const ask = (work) => {
      const request = {};
      transaction.pending++;
      transaction.begun.then(() => {
        request.result = structuredClone(work());
        request.onsuccess?.();
        transaction.pending--;
        setImmediate(transaction.settle);
      });
      return request;
    };
    const found = (key) => [...rows.values()].filter((row) => row.record === key);
    return {
      get: (key) => ask(() => rows.get(key)),
      getAll: () => ask(() => [...rows.values()]),
      put: (value, key) => ask(() => { rows.set(key ?? value.number, structuredClone(value)); }),
      add: (value) => ask(() => { const number = rows.size + 1; rows.set(number, { ...structuredClone(value), number }); return number; }),
      index: () => ({ getAll: (key) => ask(() => found(key)), count: (key) => ask(() => found(key).length) }),
    };
  }
}

const factory = {
  open() {
    const request = { result: new Database() };
    setImmediate(() => { request.onupgradeneeded(); request.onsuccess(); });
    return request;
  },
};

const idle = () => new Promise((resolve) => setImmediate(resolve));

async function until(condition) {
  for (let turns = 0; !condition(); turns++) {
    if (turns > 1000) throw new Error("nothing more happens");
    await idle();
  }
}

async function opened({ tree, script }, fetched) {
  const document = documentOf(tree);
  new Function("document", "indexedDB", "fetch", "setTimeout", script)(document, factory, fetched, () => {});
  const page = { document, at: document.getElementById };
  await until(() => page.at("ledger").hasChildNodes());
  page.press = async (id) => {
    const button = page.at(id);
    if (!button) return;
    button.click();
    await idle();
    await until(() => button.ariaBusy !== "true");
  };
  page.enter = (id, text) => {
    const field = page.at(id);
    field.value = text;
    field.fire("input");
    field.fire("change");
  };
  page.choose = (name, place) => {
    const inputs = document.querySelectorAll(`input[name=${name}]`).filter((input) => !input.parentElement.hidden);
    for (const input of inputs) input.checked = false;
    inputs[place % inputs.length].checked = true;
    inputs[place % inputs.length].fire("change");
  };
  return page;
}

// What one person does with an open page; every step may be hostile.
async function used(page, asked) {
  page.choose("level", asked.level);
  page.choose("form", asked.form);
  if (asked.file) {
    const bytes = Buffer.from(asked.file.bytes, "hex");
    const buffer = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
    page.at("file").files = [{ name: asked.file.name, size: bytes.length, arrayBuffer: async () => buffer }];
    page.at("file").fire("change");
    for (let i = 0; i < 3; i++) await idle();
  } else page.enter("record", asked.record);
  page.at("cells").querySelectorAll("input").forEach((input, i) => { input.value = asked.cells[i % asked.cells.length]; });
  page.at("stated").querySelectorAll("select, input").forEach((field, i) => { field.value = asked.stated[i]; });
  page.enter("name", asked.name);
  page.enter("limit-epsilon", asked.limit[0]);
  page.enter("limit-precision", asked.limit[1]);
  if (asked.limit_of_rho) for (const [to, from] of [["rho", "epsilon"], ["epsilon", null], ["precision", null]]) {
    page.enter(`limit-${to}`, from ? asked.limit[0] : "");
  }
  await page.press("limit");
  await page.press("count");
  const seen = { said: [page.at("said").textContent], counted: page.at("counted").textContent !== "" };
  seen.form = page.document.querySelector("input[name=form]:checked").value;
  seen.record = page.at("record").value;
  await page.press("make");
  seen.again = page.at("made").textContent.includes("no new noise was drawn");
  seen.report = page.at("report")?.textContent ?? null;
  seen.said.push(page.at("said").textContent);
  if (seen.report !== null && asked.ends) {
    if (page.at("seen")) { page.at("seen").checked = true; page.at("seen").fire("change"); }
    await page.press(asked.ends);
    seen.said.push(page.at("said").textContent);
    seen.done = !page.at("end").hidden;
  }
  return seen;
}
