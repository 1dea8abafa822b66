// The page: what a person does, step by step. Nothing here can be reached from outside this script.
const ROWS = 400;
const MOST_BYTES = 1 << 24;
const SAMPLE = [0, 0, 1, 5, 20];
const AXES = DATA.axes.map((axis) => axis.labels);
const CELLS = AXES.reduce((cells, labels) => cells * labels.length, 1);
const WORDS = DATA.words ? new Words(DATA.unicode) : null;
const UNIT = DATA.words ? "unit_words" : "unit_counts";
const samplers = new Map();
let counts = null;

function entropy(size) {
  const bytes = new Uint8Array(size);
  for (let start = 0; start < size; start += 65536) crypto.getRandomValues(bytes.subarray(start, start + 65536));
  return bytes;
}

function samplerOf(level) {
  if (!samplers.has(level)) {
    samplers.set(level, isOfRho(level)
      ? new GaussianSampler(fraction(level.variance))
      : new Sampler(fraction(level.rate), thresholds(level.thresholds)));
  }
  return samplers.get(level);
}

function labelOf(cell) {
  const names = [];
  for (const labels of AXES.toReversed()) {
    names.unshift(labels[cell % labels.length]);
    cell = Math.floor(cell / labels.length);
  }
  return names.join(" / ");
}

const chosen = () => DATA.levels[Number(document.querySelector("input[name=level]:checked").value)];
const formOf = () => document.querySelector("input[name=form]:checked").value;

function nameOf() {
  normalised(at("name").value);
  return seen(at("name").value);
}

// The cells to show: those above zero first.
function cellsToShow(...columns) {
  const order = [...columns[0].keys()];
  const weight = (i) => columns.reduce((most, column) => (column[i] > most ? column[i] : most), 0n);
  const first = order.filter((i) => weight(i) > 0n), rest = order.filter((i) => weight(i) <= 0n);
  return [...first, ...rest].slice(0, ROWS);
}

// Counts belong to the record as it was when it was counted: changing the record discards them.
function forget() {
  counts = null;
  at("counted").replaceChildren();
  at("made").replaceChildren();
}

function showForm() {
  forget();
  const form = formOf(), text = form === "text";
  at("typed").hidden = form === "cells";
  at("cells").hidden = form !== "cells";
  at("record-label").textContent = say(text ? "record_text" : "record_counts");
  at("record-hint").textContent = text
    ? say("hint_text")
    : say("hint_counts", { axes: DATA.axes.map((axis) => axis.name).join(", ") });
  if (form === "cells" && !at("cells").hasChildNodes()) {
    const rows = Array.from({ length: CELLS }, (_, cell) => {
      const input = make("input", { inputMode: "numeric", value: "0", autocomplete: "off" });
      input.setAttribute("inputmode", "numeric");
      input.setAttribute("aria-label", labelOf(cell));
      return [labelOf(cell), input];
    });
    at("cells").append(table(say("record_counts"), [say("label"), say("true_count")], rows));
  }
}

function counted() {
  if (formOf() === "text") return countText(at("record").value, AXES[0], WORDS);
  if (formOf() === "counts") return countCounts(at("record").value, AXES);
  const values = Array.from(at("cells").querySelectorAll("input"), (input, cell) => {
    const text = input.value.trim() || "0";
    if (!/^[0-9]{1,19}$/.test(text) || BigInt(text) > MAX_COUNT) throw new Refused("not_whole_cell", { label: labelOf(cell) });
    return BigInt(text);
  });
  return { values, outside: 0n, kinds: 0 };
}

function showCounts() {
  if (at("record").value.length > MOST_BYTES) throw new Refused("too_large", { most: MOST_BYTES });
  const found = counted();
  counts = found.values;
  const positive = counts.filter((value) => value > 0n).length;
  const inside = counts.reduce((sum, value) => sum + value, 0n);
  const cells = cellsToShow(counts);
  const rows = cells.map((cell) => [labelOf(cell), `${counts[cell]}`]);
  at("counted").replaceChildren(
    ...(inside ? [] : [paragraph(say("nothing_counted", { cells: CELLS }), "warning")]),
    paragraph(say(formOf() === "text" ? "found_words" : "found_counts", { inside, cells: CELLS, positive, outside: found.outside, kinds: found.kinds })),
    table(say("counted_caption"), [say("label"), say("true_count")], rows),
  );
  if (cells.length < CELLS) at("counted").append(paragraph(say("more_rows", { rows: cells.length, cells: CELLS }), "hint"));
  at("made").replaceChildren();
  at("counted").focus();
}

function placesOf(level) {
  if (isOfRho(level)) {
    const { shortRho: rho, epsilonAtDelta: epsilon } = level;
    return { ...level, rho, epsilon, one: say(`${UNIT}_one`), many: say(UNIT) };
  }
  const unit = say(level.shortPrecision === "1" ? `${UNIT}_one` : UNIT);
  return { ...level, precision: level.shortPrecision, epsilon: level.shortEpsilon, unit };
}

// What a level protects, in a sentence.
function sentence(level) {
  return say(`level_${level.strength}`, { amount: level.amount, unit: say(level.amount === "1" ? `${UNIT}_one` : UNIT), guesses: level.guesses });
}

// The keys of what a level means for a person.
function meant({ strength, rho }) {
  if (strength === "weak" || strength === "nothing") return [rho ? "rho_weak" : "means_weak"];
  if (rho) return [strength === "strong" ? "rho_strong" : "rho_moderate", "rho_epsilon", "rho_larger"];
  return [strength === "strong" ? "means_protected" : "means_moderate", "means_not_protected"];
}

function showMeaning() {
  const level = chosen(), places = placesOf(level), meanings = meant(level);
  const draws = SAMPLE.map((count) => [`${count}`, ...[1, 2, 3].map(() => noisyOf([BigInt(count)], level)[0])]);
  const heads = [say("sample_true"), ...[1, 2, 3].map((number) => say("sample_draw", { number }))];
  at("meaning").replaceChildren(
    paragraph(say("means_zero", places)),
    paragraph(say("means_within", places)),
    ...meanings.map((key) => paragraph(say(key, places), meanings.length === 1 ? "warning" : "")),
    table(say("sample_caption"), heads, draws),
    folded(say("means_exact"), paragraph(level.promise), paragraph(level.meaning)),
  );
  at("made").replaceChildren();
  showParty();
}

function noisyOf(values, level) {
  return privatized(values, samplerOf(level), DATA.truncated, entropy).map(String);
}

// What the level chosen comes to for the two words of the party.
function partyHere(level) {
  if (isOfRho(level)) {
    const { shortRho: total, epsilonAtDelta: epsilon, guesses } = level.party;
    return [say("party_text_rho"), say("party_here_rho", { rho: level.shortRho, total, epsilon, guesses })];
  }
  const exponent = times(rateOf(level), { num: 10n, den: 1n }), power = Number(exponent.num) / Number(exponent.den);
  const factor = power <= 6 ? Math.exp(power).toPrecision(3) : `e^${shown(exponent)}`;
  return [say("party_text"), say("party_here", { ...placesOf(level), factor })];
}

function showParty() {
  const level = chosen();
  const [withParty, without] = [noisyOf([5n, 5n], level), noisyOf([0n, 0n], level)];
  const rows = [
    [say("party_with"), "5", "5"], [say("party_with_noisy"), ...withParty],
    [say("party_without"), "0", "0"], [say("party_without_noisy"), ...without],
  ];
  at("example").replaceChildren(
    ...partyHere(level).map((text) => paragraph(text)),
    table(say("party_caption"), [say("party_person"), say("surprise"), say("party")], rows),
  );
}

async function openFile() {
  const [file] = at("file").files;
  if (!file) return;
  if (file.size > MOST_BYTES) return status(say("too_large", { most: MOST_BYTES }), true);
  const ofCounts = /\.(csv|json)$/i.test(file.name) && formOf() === "text";
  forget();
  try {
    const bytes = new Uint8Array(await file.arrayBuffer()), other = formatOf(bytes, DATA.signatures);
    if (other) throw new Refused(other);
    at("record").value = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (error) {
    at("record").value = "";
    return status(say(error instanceof Refused ? error.key : "not_text"), true);
  }
  if (ofCounts) {
    at("form-counts").checked = true;
    showForm();
  }
  status(ofCounts ? say("opened_counts", { file: file.name }) : "");
}

function offer() {
  at("where").textContent = DATA.address ? say("stays_until", { address: DATA.address }) : say("stays_here");
  at("rule").textContent = DATA.rule ?? "";
  const listed = say(DATA.words ? "listed_words" : "listed_counts", { cells: CELLS });
  at("listed").append(
    paragraph(listed),
    make("div", { className: "scroll", tabIndex: 0, role: "region", "aria-label": listed },
      ...DATA.axes.map(({ name, labels }) => paragraph(`${DATA.axes.length > 1 ? `${name}: ` : ""}${labels.join(", ")}`))),
  );
  at("form-text").parentElement.hidden = !DATA.words;
  at("form-cells").parentElement.hidden = CELLS > ROWS;
  at(DATA.words ? "form-text" : CELLS > ROWS ? "form-counts" : "form-cells").checked = true;
  at("levels").append(
    ...DATA.levels.map((level, place) => {
      const input = make("input", { type: "radio", name: "level", value: `${place}`, checked: place === 0, autocomplete: "off" });
      const numbers = say(isOfRho(level) ? "level_rho" : "level_numbers", placesOf(level));
      return make("label", {}, input, make("span", {}, `${sentence(level)} (${numbers})`));
    }),
  );
  const units = { one: say(`${UNIT}_one`), many: say(UNIT) };
  at("statements").append(...["state_level", ...DATA.before].map((key) => make("li", {}, say(key, units))));
}

// A field for each covariate; what it may be and that nothing protects it stands above it.
function offerCovariates() {
  at("clear").hidden = !DATA.covariates.length;
  at("stated").append(...DATA.covariates.map((one) => {
    const said = say("clear_each", { name: one.name, allowed: allowedOf(one) });
    const choices = [make("option", { value: "" }, say("choose")), ...(one.values ?? []).map((value) => make("option", { value }, value))];
    const field = one.values
      ? make("select", { autocomplete: "off" }, ...choices)
      : make("input", { inputMode: "decimal", autocomplete: "off" });
    if (!one.values) field.setAttribute("inputmode", "decimal");
    field.addEventListener("input", () => at("made").replaceChildren());
    return make("label", {}, make("span", {}, said), field);
  }));
}

// What the person states, by name, in the study's order.
function statedNow() {
  const entered = Array.from(at("stated").querySelectorAll("select, input"), (field) => field.value);
  return statedAs(DATA.covariates, entered).map((value, place) => [DATA.covariates[place].name, value]);
}

// The limit as it was entered: of epsilon at an N, or of rho.
function limitEntered() {
  const [epsilon, precision, rho] = ["epsilon", "precision", "rho"].map((name) => at(`limit-${name}`).value.trim());
  const limit = rho && !epsilon && !precision
    ? { rho: decimal(rho) }
    : { epsilon: decimal(epsilon), precision: decimal(precision) };
  if ((rho && !limit.rho) || Object.values(limit).includes(null)) throw new Refused("limit_wrong");
  return limit;
}

async function start() {
  offer();
  offerCovariates();
  showForm();
  showMeaning();
  for (const input of document.querySelectorAll("input[name=form]")) input.addEventListener("change", showForm);
  at("file").addEventListener("change", openFile);
  at("file").addEventListener("click", () => { at("file").value = ""; });  // so that the same file again is a change
  at("record").addEventListener("input", forget);
  at("cells").addEventListener("input", forget);
  onClick(at("count"), showCounts);
  let ledger = null;
  try {
    ledger = await Ledger.open(indexedDB, entropy);
  } catch {
    at("ledger").replaceChildren(paragraph(say("ledger_failed"), "warning"));
  }
  const needed = () => { if (!ledger) throw new Refused("ledger_failed"); return ledger; };
  onClick(at("make"), () => makeReport(needed(), false));
  onClick(at("limit"), async () => {
    await needed().setLimit(limitEntered());
    await showLedger(ledger);
  });
  for (const input of document.querySelectorAll("input[name=level]")) {
    input.addEventListener("change", () => { showMeaning(); if (ledger) showLedger(ledger); });
  }
  at("name").addEventListener("change", () => { at("made").replaceChildren(); if (ledger) showLedger(ledger); });
  if (ledger) await showLedger(ledger);
}

start();
