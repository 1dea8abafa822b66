// Once a report is made: it is shown, saved or sent, and then the page is done.
async function makeReport(ledger, anew) {
  if (!counts) throw new Refused("count_first");
  const level = chosen(), name = nameOf(), values = counts, stated = statedNow();
  const encoded = (token, noisy) => encodeReport(DATA.fixed, numbersOf(level), token, noisy, stated);
  const make = (token) => encoded(token, privatized(values, samplerOf(level), DATA.truncated, entropy));
  const mend = ({ report, gone }) => {
    const { token, noisy, beside } = contentOf(report);
    if (JSON.stringify(beside) === JSON.stringify(stated)) return report;
    if (gone) throw new Refused("covariates_left", { stated: inWords(beside) });
    return encoded(token, noisy);
  };
  const entry = await ledger.obtain(DATA.id, DATA.title, name, level, make, mend, anew);
  await showReport(ledger, entry, { name, values, level });
  await showLedger(ledger);
}

// What a report says: its token, its noisy counts and its covariates. (A covariate may be called participant.)
function contentOf(report) {
  const { participant, covariates = {} } = JSON.parse(report);
  const noisy = /"reports":\[([^\]]*)\]/.exec(report)[1].split(",").map(BigInt);
  return { token: participant, noisy, beside: DATA.covariates.map(({ name }) => [name, covariates[name]]) };
}

const inWords = (stated) => stated.map(([name, value]) => `${name}=${value}`).join(", ");

// What releases at these levels come to, at the N of the level asked for where all are of epsilon.
function inAll(levels, asked) {
  if (![...levels, asked].some(isOfRho)) {
    const total = times(sumOf(levels, rateOf), fraction(asked.precision));
    return say("in_epsilon", { total: shown(total), precision: asked.shortPrecision });
  }
  return say(levels.every(isOfRho) ? "in_rho" : "in_rho_mixed", { total: shown(sumOf(levels, rhoOf)) });
}

const levelOf = (entry) => isOfRho(entry)
  ? say("level_rho", { rho: shown(fraction(entry.rho)) })
  : say("level_numbers", { epsilon: shown(fraction(entry.epsilon)), precision: shown(fraction(entry.precision)) });

// The report's bytes, one click away.
function wholeOf(report) {
  const caption = say("report_caption", { bytes: report.length });
  const box = make("div", { className: "scroll", tabIndex: 0, role: "region" }, make("pre", { id: "report" }, report));
  box.setAttribute("aria-label", caption);
  const whole = folded(caption, box);
  whole.firstChild.id = "bytes";
  return whole;
}

async function showReport(ledger, entry, { name, values, level }) {
  const { token, noisy, beside } = contentOf(entry.report);
  const cells = cellsToShow(values, noisy);
  const rows = cells.map((cell) => [labelOf(cell), `${values[cell]}`, `${noisy[cell]}`]);
  const gone = (await ledger.entries(name)).filter((each) => each.gone || each.number === entry.number);
  const adds = say("report_adds", { sum: inAll(gone, level) });
  at("made").replaceChildren(
    paragraph(entry.again ? say("made_again", { name, date: whenOf(entry.made) }) : say("made_new"), "note"),
    table(say("beside_caption"), [say("label"), say("true_count"), say("noisy_count")], rows),
    ...(cells.length < CELLS ? [paragraph(say("more_rows", { rows: cells.length, cells: CELLS }), "hint")] : []),
    ...(beside.length ? [paragraph(`${say("clear_heading")}: ${inWords(beside)}. ${say("clear_known")}`, "warning")] : []),
    wholeOf(entry.report),
    paragraph(say("report_token", { token })),
    paragraph(adds),
    ...handingOver(ledger, entry, token, adds),
    ...(entry.gone ? [freshNoise(ledger)] : []),
  );
  at("made").focus();
}

function handingOver(ledger, entry, token, adds) {
  const download = make("button", { type: "button", id: "download", className: DATA.address ? "" : "main" }, say("download"));
  onClick(download, async () => {
    const bytes = await ledger.handOver(entry.number, entry.report), file = `report-${token.slice(0, 8)}.json`;
    const link = URL.createObjectURL(new Blob([bytes], { type: "application/json" }));
    make("a", { href: link, download: file }).click();
    setTimeout(() => URL.revokeObjectURL(link), 60000);
    finish(bytes, say("downloaded", { file, contact: DATA.contact }), adds);
  });
  if (!DATA.address) return [make("p", {}, download)];
  const instead = folded(say("download_instead"), make("p", {}, download));
  if (entry.sent) return [paragraph(say("sent_before", { address: DATA.address, date: whenOf(entry.sent) }), "note"), instead];
  const read = make("input", { type: "checkbox", id: "seen", autocomplete: "off" });
  const send = make("button", { type: "button", id: "send", className: "main", disabled: true }, say("send"));
  read.addEventListener("change", () => { send.disabled = !read.checked; });
  onClick(send, async () => {
    const bytes = await ledger.handOver(entry.number, entry.report);
    if (!(await sendReport(bytes))) return showLedger(ledger);
    await ledger.accepted(entry.number);
    finish(bytes, say("sent", { address: DATA.address }), adds);
  });
  const label = make("label", {}, read, say("send_seen", { address: DATA.address }));
  return [make("fieldset", {}, make("legend", {}, say("send")), label, send), instead];
}

// The end: what was done, and no button. The record is taken out of the page.
function finish(bytes, ...said) {
  at("record").value = "";
  at("cells").replaceChildren();
  at("stated").replaceChildren();
  forget();
  status("");
  for (const section of document.querySelectorAll("main > section")) section.hidden = section.id !== "end";
  at("where").hidden = true;
  at("end-said").replaceChildren(...said.map((text) => paragraph(text)), wholeOf(bytes), paragraph(say("end_close")));
  at("end").focus();
}

// Plain text to the one address that the study names: no cookie, no referrer, no redirect. Whether it was accepted.
async function sendReport(body) {
  const address = DATA.address;
  status(say("sending"));
  let answer, why;
  try {
    answer = await fetch(address, {
      method: "POST", body, headers: { "Content-Type": "text/plain" },
      mode: "cors", credentials: "omit", referrerPolicy: "no-referrer", redirect: "error", cache: "no-store",
    });
    why = (await answer.text()).slice(0, 300);
  } catch {
    status(say("sent_failed", { address }), true);
    return false;
  }
  if (!answer.ok) status(say("sent_refused", { address, why }), true);
  return answer.ok;
}

function freshNoise(ledger) {
  const sure = make("input", { type: "checkbox", id: "sure", autocomplete: "off" });
  const anew = make("button", { type: "button", id: "anew", disabled: true }, say("anew"));
  sure.addEventListener("change", () => { anew.disabled = !sure.checked; });
  onClick(anew, () => makeReport(ledger, true));
  const box = make("fieldset", {}, make("legend", {}, say("anew")), make("label", {}, sure, say("anew_sure")), anew);
  return folded(say("fresh_more"), box);
}

function limitInWords(limit) {
  if (isOfRho(limit)) return say("in_rho", { total: shown(fraction(limit.rho)) });
  return say("in_epsilon", { total: shown(fraction(limit.epsilon)), precision: shown(fraction(limit.precision)) });
}

async function showLedger(ledger) {
  const name = seen(at("name").value), entries = await ledger.entries(), limit = await ledger.limit();
  const rows = entries.map((entry) => [
    entry.title,
    levelOf(entry),
    entry.gone ? whenOf(entry.gone) : say("ledger_not_left"),
  ]);
  const heads = [say("ledger_study"), say("ledger_level"), say("ledger_left")], caption = say("ledger_caption");
  const said = rows.length ? [folded(`${caption} (${rows.length})`, table(caption, heads, rows))] : [paragraph(say("ledger_none"))];
  if (rows.length && name && name.isWellFormed()) {
    const gone = (await ledger.entries(name)).filter((entry) => entry.gone);
    said.unshift(paragraph(say("spent", { name, sum: inAll(gone, chosen()) })));
  }
  at("ledger").replaceChildren(...said);
  at("limit-now").textContent = limit ? say("limit_set", { sum: limitInWords(limit) }) : say("limit_none");
}
