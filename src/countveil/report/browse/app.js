// Two fits side by side, what is known about a fit, and the tabs that lead from view to view.

function compareView(panel) {
  const [one, other] = DATA.fits, pairs = DATA.pairs[state.kind], kinds = DATA.fits.map((fit) => fit.kinds[state.kind]);
  const same = pairs.filter(([, , , alike]) => alike).length, [kind] = kinds;
  const rows = pairs.map(([i, j, overlap]) => [kind.components[i].number, kinds[1].components[j].number, overlap, kind.components[i].share[0], kinds[1].components[j].share[0]]);
  const alone = kinds.map((each, f) => each.components.filter((_, k) => !pairs.some((pair) => pair[f] === k)).map(({ title }) => title));
  const left = [one, other].map((fit, f) => (alone[f].length ? ` Only in ${fit.name}: ${alone[f].join(", ")}.` : "")).join("");
  const more = (each) => button("Words side by side", (event) => {
    const detail = pairDetail(kinds, each);
    event.target.replaceWith(detail);
    detail.focus();
  }, { className: "link beside-button" });
  panel.append(
    make("div", { className: "controls" },
      make("span", { className: "key" }, make("span", { className: "line" }, "above: ", named(one.name)), bar([0.5, 0.3, 0.7], 1)),
      make("span", { className: "key" }, make("span", { className: "line" }, "below: ", named(other.name)), bar([0.5, 0.3, 0.7], 1, "second")),
      download("comparison", [`${kind.one}_of_${one.name}`, `${kind.one}_of_${other.name}`, "overlap", "prevalence", "other_prevalence"], rows)),
    paragraph(`${same} of ${Math.min(...kinds.map((each) => each.components.length))} ${kind.many} are the same in both: at least half of the two distributions coincide.${left}`),
    make("ul", { className: "cards", id: "results" }, ...pairs.map((pair) => {
      const [i, j, overlap, alike] = pair, both = [kinds[0].components[i], kinds[1].components[j]];
      return make("li", { className: `card${alike ? "" : " unstable"}` },
        make("h2", {}, `${both[0].title} and ${both[1].title}`),
        paragraph(`${alike ? "the same" : "not the same"}: ${percent(overlap)} in common`, "soft"),
        make("p", { className: "numbers" }, `${said(both[0].share)} and ${said(both[1].share)} of ${kind.whole}`),
        bar(both[0].share, mostShare()), bar(both[1].share, mostShare(), "second"),
        make("bdi", { className: "best" }, labelsOf(kinds[0], i, 6).join(", ")), make("bdi", { className: "best second" }, labelsOf(kinds[1], j, 6).join(", ")),
        more(pair));
    })));
}

// The first members of both components, each with its share in one fit above that in the other.
function pairDetail(kinds, [i, j]) {
  const box = make("div", { className: "pair", tabIndex: -1 });
  for (const [place, first] of kinds[0].lists.entries()) {
    const second = kinds[1].lists[place], most = mostAlong(place);
    const labels = [...new Set([...first.top[i].slice(0, 10).map((v) => first.labels[v]), ...second.top[j].slice(0, 10).map((v) => second.labels[v])])];
    const valueOf = (list, k, label) => (entry(list, list.labels.indexOf(label), k) ?? []).slice(1);
    const found = labels.map((label) => [label, valueOf(first, i, label), valueOf(second, j, label)]);
    found.sort((a, b) => Math.max(b[1][0] ?? 0, b[2][0] ?? 0) - Math.max(a[1][0] ?? 0, a[2][0] ?? 0));
    const words = (values) => (values.length ? said(values) : "–");
    box.append(make("h3", {}, capital(first.axis)), make("ul", { className: "bars" }, ...found.map(([label, mine, its]) =>
      line(label, `${words(mine)}; ${words(its)}`, ...(mine.length ? [bar(mine, most)] : []), ...(its.length ? [bar(its, most, "second")] : [])))));
  }
  return box;
}

function aboutView(panel) {
  const fit = fitted();
  panel.append(
    make("h2", {}, "What was done to the counts"), ...fit.promise.map((text) => paragraph(text)),
    make("h2", {}, "Can it be trusted?"), paragraph(fit.verdict),
    make("h2", {}, "How it was made"),
    make("dl", {}, ...fit.facts.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)])),
    paragraph("Numbers on this page have four digits. CSV files hold what the page holds; a text that a spreadsheet would compute has an apostrophe before it.", "soft"));
}

// One more view is one more entry: what it is called, whether the fit has it, and what draws it.
const VIEWS = {
  components: { name: (fit) => capital(kindOf(fit).many), draw: componentsView },
  members: { name: (fit) => (kindOf(fit).lists.length > 1 ? "Search" : capital(kindOf(fit).lists[0].plural)), draw: membersView },
  rows: { name: (fit) => capital(fit.rows.plural), here: (fit) => fit.rows !== null, draw: rowsView },
  map: { name: () => "Map", here: (fit) => kindOf(fit).map !== null, draw: mapView },
  bursts: { name: () => "Dispersion", here: (fit) => fit.bursts !== null, draw: burstsView },
  compare: { name: () => "Compare", here: () => DATA.pairs.length > 0, draw: compareView },
  about: { name: () => "About this fit", draw: aboutView },
};

// Moves the focus among buttons by two keys, Home and End.
function walk(event, buttons, back, on) {
  const place = buttons.indexOf(document.activeElement), last = buttons.length - 1;
  const next = { [back]: Math.max(0, place - 1), [on]: Math.min(last, place + 1), Home: 0, End: last }[event.key];
  if (next === undefined || place < 0) return;
  event.preventDefault();
  buttons[next].focus();
  if (buttons[next].role === "tab") buttons[next].click();
}

function tabs() {
  const here = Object.entries(VIEWS).filter(([, view]) => !view.here || view.here(fitted()));
  if (!here.some(([id]) => id === state.view)) state.view = "components";
  at("tabs").replaceChildren(...here.map(([id, view]) => {
    const chosen = id === state.view;
    return button(view.name(fitted()), () => show({ view: id, search: "" }, `tab-${id}`),
      { id: `tab-${id}`, role: "tab", tabIndex: chosen ? 0 : -1, "aria-selected": String(chosen), "aria-controls": "view" });
  }));
}

const wide = () => matchMedia("(min-width: 56.01rem)").matches;

function show(change = {}, focus = "") {
  const before = state.view;
  Object.assign(state, change);
  state.component = Math.min(state.component, kindOf().components.length - 1);
  if (+state.rowsBy >= kindOf().components.length) state.rowsBy = "";
  const fit = fitted();
  at("lead").textContent = `${fit.shape}; ${fit.kinds.map(counted).join(", ")}. ${fit.promise[0]}`;
  const [verdict, meaning, consequence] = fit.headline;
  at("trust").replaceChildren(make("details", { className: `box ${fit.trust}`, open: wide() },
    make("summary", {}, make("strong", {}, `${verdict}.`), ` ${consequence}`), paragraph(meaning)));
  tabs();
  at("said").textContent = "";
  at("view").setAttribute("aria-labelledby", `tab-${state.view}`);
  at("view").replaceChildren();
  for (const each of state.view === "compare" ? DATA.fits : [fit]) {
    if (!["good", "fair"].includes(each.trust)) at("view").append(paragraph(`${DATA.fits.length > 1 ? `${each.name}: ${each.headline[0].toLowerCase()}` : each.headline[0]}. ${each.headline[2]}`, "note untrusted"));
  }
  VIEWS[state.view].draw(at("view"));
  if (focus) at(focus).focus();
  else if (before !== state.view) {
    at("view").focus();
    at("tabs").scrollIntoView();
  }
}

if (DATA.fits.length > 1) {
  at("which").append(choice("fit", "Fit", DATA.fits.map((fit, i) => [i, fit.name]), 0, (i) => show({ fit: +i, component: 0, rowsBy: "" })));
}
at("tabs").addEventListener("keydown", (event) => walk(event, [...at("tabs").children], "ArrowLeft", "ArrowRight"));
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || ["INPUT", "SELECT", "TEXTAREA"].includes(event.target.tagName)) return;
  event.preventDefault();
  if (!document.querySelector("input[type=search]")) show({ view: "members" });
  document.querySelector("input[type=search]").focus();
});
show();
