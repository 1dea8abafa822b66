// Once a report is made: it is shown, saved or sent, and then the page is done.
async function makeReport(ledger, anew) {
  if (!counts) throw new Refused("count_first");
  const level = chosen(), name = nameOf(), values = counts;
  const entry = await ledger.obtain(DATA.id, DATA.title, name, level, (token) =>
    encodeReport(DATA.fixed, level, token, privatized(values, samplerOf(level), DATA.truncated, entropy)), anew);
  await showReport(ledger, entry, { name, values, level });
  await showLedger(ledger);
}

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
  const token = /"participant":"([0-9a-f]+)"/.exec(entry.report)[1];
  const noisy = /"reports":\[([^\]]*)\]/.exec(entry.report)[1].split(",").map(BigInt);
  const cells = cellsToShow(values, noisy);
  const rows = cells.map((cell) => [labelOf(cell), `${values[cell]}`, `${noisy[cell]}`]);
  const spent = Ledger.sum(await ledger.entries(name)), precision = fraction(level.precision);
  const total = shown(times(entry.gone ? spent : plus(spent, rateOf(level)), precision));
  const adds = say("report_adds", { total, precision: level.shortPrecision });
  at("made").replaceChildren(
    paragraph(entry.again ? say("made_again", { name, date: whenOf(entry.made) }) : say("made_new"), "note"),
    table(say("beside_caption"), [say("label"), say("true_count"), say("noisy_count")], rows),
    ...(cells.length < CELLS ? [paragraph(say("more_rows", { rows: cells.length, cells: CELLS }), "hint")] : []),
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
    const bytes = await ledger.handOver(entry.number), file = `report-${token.slice(0, 8)}.json`;
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
    const bytes = await ledger.handOver(entry.number);
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

async function showLedger(ledger) {
  const name = seen(at("name").value), entries = await ledger.entries(), limit = await ledger.limit();
  const rows = entries.map((entry) => [
    entry.title,
    say("level_numbers", { epsilon: shown(fraction(entry.epsilon)), precision: shown(fraction(entry.precision)) }),
    entry.gone ? whenOf(entry.gone) : say("ledger_not_left"),
  ]);
  const heads = [say("ledger_study"), say("ledger_level"), say("ledger_left")], caption = say("ledger_caption");
  const said = rows.length ? [folded(`${caption} (${rows.length})`, table(caption, heads, rows))] : [paragraph(say("ledger_none"))];
  if (rows.length && name && name.isWellFormed()) {
    const level = chosen(), spent = Ledger.sum(await ledger.entries(name));
    const total = shown(times(spent, fraction(level.precision)));
    said.unshift(paragraph(say("spent", { name, total, precision: level.shortPrecision })));
  }
  at("ledger").replaceChildren(...said);
  at("limit-now").textContent = limit
    ? say("limit_set", { epsilon: shown(fraction(limit.epsilon)), precision: shown(fraction(limit.precision)) })
    : say("limit_none");
}
