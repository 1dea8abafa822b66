// Counts over a study's categories: the twin of countveil/privacy/counting.py.
// Which characters are letters, marks and digits, which are unknown, and what decides a final sigma are the
// tables of the Python that wrote the page; this browser may know a later Unicode.
const MAX_COUNT = 1n << 62n;
const PIECE = 1 << 16;
const LONGEST_CELL = 131072;  // the limit of Python's csv module
const BLANK = /^[\t-\r\x1c- \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+|[\t-\r\x1c- \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+$/g;

class Refused extends Error {
  constructor(key, values = {}) {
    super(key);
    this.key = key;
    this.values = values;
  }
}

// A set of code points from the lengths of the runs outside and inside it, alternating, in base 36.
class CodePoints {
  constructor(text) {
    this.edges = [];
    let at = 0;
    for (const length of text.split(" ")) this.edges.push((at += parseInt(length, 36)));
    this.common = Uint8Array.from({ length: 0x3000 }, (_, code) => bisectRight(this.edges, code) % 2);
  }

  has(code) {
    return code < 0x3000 ? this.common[code] === 1 : bisectRight(this.edges, code) % 2 === 1;
  }
}

class Words {
  constructor(tables) {
    this.kept = new CodePoints(tables.kept);
    this.unknown = new CodePoints(tables.unknown);
    this.cased = new CodePoints(tables.cased);
    this.ignorable = new CodePoints(tables.ignorable);
  }

  // Lower case by character; a capital sigma is final behind a cased letter and not before one.
  lower(text) {
    const characters = Array.from(text);
    const cased = (i, step) => {
      let at = i + step;
      while (at >= 0 && at < characters.length && this.ignorable.has(characters[at].codePointAt(0))) at += step;
      return at >= 0 && at < characters.length && this.cased.has(characters[at].codePointAt(0));
    };
    return characters
      .map((character, i) => {
        if (character !== "\u03a3") return character.toLowerCase();
        return cased(i, -1) && !cased(i, 1) ? "\u03c2" : "\u03c3";
      })
      .join("");
  }

  // The words of a text, in their order, a piece at a time: no rule looks across a space or the end of a line.
  *split(text) {
    if (!text.isWellFormed()) throw new Refused("not_text");
    const gap = /[ \n]/g;
    for (let start = 0; start < text.length; ) {
      gap.lastIndex = start + PIECE;
      const end = gap.exec(text)?.index ?? text.length;
      yield* this.splitPiece(text.slice(start, end));
      start = end;
    }
  }

  *splitPiece(text) {
    const known = Array.from(text, (c) => (this.unknown.has(c.codePointAt(0)) ? " " : c)).join("");
    const lower = this.lower(known.normalize("NFC")).normalize("NFC");
    const runs = Array.from(lower, (c) => {
      if (this.kept.has(c.codePointAt(0))) return c;
      return c === "'" || c === "\u2019" ? "'" : " ";
    }).join("");
    for (const run of runs.split(" ")) {
      if (!run.includes("'")) {
        if (run) yield run;
        continue;
      }
      for (const part of run.split("''")) {
        const word = part.replace(/^'|'$/g, "");
        if (word) yield word;
      }
    }
  }
}

function countText(text, labels, words) {
  const found = new Map();
  for (const word of words.split(text)) found.set(word, (found.get(word) ?? 0) + 1);
  const values = labels.map((label) => BigInt(found.get(label) ?? 0));
  for (const label of labels) found.delete(label);
  let outside = 0n;
  for (const times of found.values()) outside += BigInt(times);
  return { values, outside, kinds: found.size };
}

// Rows of comma-separated text; quoted cells may hold commas, doubled quotes and line ends.
function csvRows(text) {
  const rows = [];
  let row = [], cell = "", state = "start", fresh = true;
  const endCell = () => {
    if (cell.length > LONGEST_CELL && Array.from(cell).length > LONGEST_CELL) throw new Refused("not_csv");
    row.push(cell);
    cell = "";
    state = "start";
  };
  const endRow = () => { if (!fresh) endCell(); rows.push(row); row = []; fresh = true; };
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (state === "quoted") {
      if (c !== '"') cell += c;
      else state = "closed";
    } else if (c === "\r" || c === "\n") {
      if (c === "\r" && text[i + 1] === "\n") i++;
      endRow();
    } else {
      fresh = false;
      if (c === ",") endCell();
      else if (c === '"' && state === "start") state = "quoted";
      else if (c === '"' && state === "closed") { cell += c; state = "quoted"; }
      else if (state === "closed") throw new Refused("not_csv");
      else { cell += c; state = "plain"; }
    }
  }
  if (state === "quoted") throw new Refused("not_csv");
  if (!fresh) endRow();
  return rows;
}

function wholeCount(cell, row) {
  const value = /^[0-9]{1,19}$/.test(cell) ? BigInt(cell) : -1n;
  if (value < 0n || value > MAX_COUNT) throw new Refused("not_whole", { row });
  return value;
}

// Counts by their labels, one for each axis, laid out in the study's order, the last axis fastest.
class Cells {
  constructor(axes) {
    this.axes = axes;
    this.places = axes.map((labels) => new Map(labels.map((label, place) => [label, place])));
    this.values = new Array(axes.reduce((cells, labels) => cells * labels.length, 1)).fill(0n);
    this.others = new Map();
  }

  add(key, count) {
    let cell = 0;
    key.forEach((label, axis) => {
      const place = this.places[axis].get(label);
      cell = cell < 0 || place === undefined ? -1 : cell * this.axes[axis].length + place;
    });
    if (cell >= 0) this.values[cell] += count;
    else this.others.set(JSON.stringify(key), (this.others.get(JSON.stringify(key)) ?? 0n) + count);
  }

  counted() {
    let outside = 0n;
    for (const total of [...this.values, ...this.others.values()]) if (total > MAX_COUNT) throw new Refused("too_many");
    for (const total of this.others.values()) outside += total;
    return { values: this.values, outside, kinds: this.others.size };
  }
}

const GROUPING = /[ ,_'\u2019\u00a0\u2009\u202f]/g;
const NUMBER = /^[+-]?(\p{Nd}+\.?\p{Nd}*|\.\p{Nd}+)(e[+-]?\p{Nd}+)?$/iu;

// A first row is a header unless it ends in a number, or looks like a count gone wrong: labels of the study, and
// a last cell with a digit in it.
function isHeader(row, key, places) {
  const last = row[key.length];
  if (NUMBER.test(last.replace(GROUPING, "").replace(BLANK, ""))) return false;
  return !(key.every((label, axis) => places[axis].has(label)) && /\p{N}/u.test(last));
}

// What a file is, by its first bytes, that is no plain text: the key of what to say about it; or undefined.
function formatOf(bytes, signatures) {
  const start = String.fromCharCode(...bytes.subarray(0, 8));
  return signatures.find(([begins]) => start.startsWith(begins))?.[1];
}

// Counts from rows label,...,count; rows of one cell add up; the first one may be a header.
function countCsv(text, axes) {
  if (!text.isWellFormed()) throw new Refused("not_text");
  const cells = new Cells(axes);
  csvRows(text.replace(/^\ufeff/, "")).forEach((row, number) => {
    if (!row.length) return;
    if (row.length !== axes.length + 1) throw new Refused("wrong_cells", { row: number + 1, cells: axes.length + 1 });
    const key = row.slice(0, -1).map((cell) => cell.replace(BLANK, ""));
    const last = row[axes.length].replace(BLANK, "");
    if (number === 0 && isHeader(row, key, cells.places)) return;
    cells.add(key, wholeCount(last, number + 1));
  });
  return cells.counted();
}

// Counts from an object label -> count, nested where there are more axes than one. Numbers are read from the text
// itself: what JSON.parse makes of them is exact only up to 2^53.
function countJson(text, axes) {
  if (!text.isWellFormed()) throw new Refused("not_text");
  const json = text.replace(/^\ufeff/, "");
  try {
    JSON.parse(json);
  } catch {
    throw new Refused("not_json");
  }
  const token = /[ \t\n\r]*([{}[\]:,]|"[^"\\]*(?:\\.[^"\\]*)*"|[^ \t\n\r{}[\]:,"]+)/y;
  const next = () => token.exec(json)[1];
  const cells = new Cells(axes);
  const walk = (labels) => {
    if (next() !== "{") throw new Refused("not_nested", { axes: axes.length });
    const seen = new Set();
    for (let found = next(); found !== "}"; found = next()) {
      const label = JSON.parse(found === "," ? next() : found), inner = [...labels, label];
      next();
      if (seen.has(label)) throw new Refused("label_twice", { label: inner.join(" / ") });
      seen.add(label);
      if (inner.length < axes.length) walk(inner);
      else cells.add(inner, wholeInJson(next(), inner.join(" / ")));
    }
  };
  walk([]);
  return cells.counted();
}

function wholeInJson(token, label) {
  const value = /^(-?0|[1-9][0-9]{0,18})$/.test(token) ? BigInt(token) : -1n;
  if (value < 0n || value > MAX_COUNT) throw new Refused("not_whole_cell", { label });
  return value;
}

// Counts that begin with a curly bracket are JSON, others are rows.
function countCounts(text, axes) {
  return /^\ufeff?[ \t\n\r]*\{/.test(text) ? countJson(text, axes) : countCsv(text, axes);
}
