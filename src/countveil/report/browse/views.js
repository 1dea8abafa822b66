// The views: each draws into the panel what it says of the chosen fit.
const SHOWN = 40; // at once, of what a search finds

// How long the scale of an axis is: that of all lists of all fits, so that bars can be compared.
function mostAlong(place) {
  const ends = (list) => (list.most ??= largest(list.entries.flat().map((each) => each.slice(1))));
  return Math.max(...DATA.fits.map((fit) => ends(fit.kinds[state.kind].lists[place])));
}

function mostShare() {
  return Math.max(...DATA.fits.map((fit) => largest(fit.kinds[state.kind].components.map((each) => each.share))));
}

// How many times as probable a member is in a component as in all counts.
function lift(list, v, k) {
  const times = entry(list, v, k)[1] / list.share[v];
  return `lift ${times < 99.5 ? times.toPrecision(2) : Math.round(times)}`;
}

function entry(list, member, component) {
  return list.entries[member].find(([k]) => k === component);
}

function ordered(components) {
  const places = components.map((_, k) => k);
  if (state.order === "size") places.sort((a, b) => components[b].share[0] - components[a].share[0]);
  if (state.order === "number") places.sort((a, b) => components[a].number - components[b].number);
  return places;
}

function notes(kind) {
  const fit = fitted(), found = [];
  found.push(fit.noIntervals ? `There are no intervals: ${fit.noIntervals}.` : "Coloured bands are 90% intervals.");
  if (fit.chains > 1) {
    found.push(`The support of a ${kind.one} is the share of the ${fit.chains} chains that found it${fit.weights ? `, weighted by ${fit.weights}` : ""}.`);
  }
  found.push(...[fit.merged, kind.whyMore].filter(Boolean));
  return paragraph(`${found.join(" ")} All lists share one scale.`, "soft");
}

// A list of components next to the one that is chosen.
function componentsView(panel) {
  const kind = kindOf(), list = make("ul", { id: "components", className: "components" });
  const detail = make("section", { id: "detail", tabIndex: -1, "aria-label": `The selected ${kind.one}` });
  const fill = () => {
    const wanted = at("filter") ? at("filter").value.toLocaleLowerCase() : "";
    const holds = (k) => [kind.components[k].title, ...labelsOf(kind, k)].some((text) => text.toLocaleLowerCase().includes(wanted));
    list.replaceChildren(...ordered(kind.components).filter(holds).map((k) => componentLine(kind, k, choose)));
    if (!list.children.length) list.append(make("li", {}, `No ${kind.one} has “${wanted}” among its first ${kind.lists[0].top[0].length}.`));
  };
  const choose = (k, byHand = true) => {
    state.component = k;
    for (const each of list.querySelectorAll("button")) each.setAttribute("aria-current", String(each.dataset.place === `${k}`));
    detail.replaceChildren(...componentDetail(kind, k, () => { fill(); choose(k, false); at("rename").focus(); }));
    if (byHand && !wide()) {
      detail.scrollIntoView();
      detail.focus();
    }
  };
  const orders = [["support", "support, then size"], ["size", "size"], ["number", "number"]];
  const rows = kind.components.map((each) => [each.number, each.support, ...each.share]);
  panel.append(
    make("div", { className: "controls" },
      ...(fitted().kinds.length > 1 ? [choice("kind", "Kind", fitted().kinds.map((each, i) => [i, each.many]), state.kind, (i) => show({ kind: +i, component: 0, list: 0 }))] : []),
      choice("order", "Order by", orders, state.order, (order) => { state.order = order; fill(); }),
      choice("members-by", `${capital(kind.lists.length > 1 ? "entries" : kind.lists[0].plural)} by`, [["top", "probability"], ["relevant", "relevance"]], state.members, (order) => { state.members = order; fill(); choose(state.component, false); }),
      field("filter", "Filter", "", fill),
      button("Save names", () => saveNames(kind), { id: "save-names", hidden: !kind.renamed }),
      download(kind.many, [kind.one, "support", "prevalence", ...ENDS()], rows)),
    notes(kind),
    make("div", { className: "beside" }, list, detail));
  list.addEventListener("keydown", (event) => walk(event, [...list.querySelectorAll("button")], "ArrowUp", "ArrowDown"));
  fill();
  choose(state.component, false);
}

function labelsOf(kind, k, n = Infinity) {
  const [first, ...others] = kind.lists;
  if (n < Infinity && others.length) return kind.lists.map((list) => list.labels[list[state.members][k][0]]);
  return [first, ...others].flatMap((list) => list[state.members][k].slice(0, n).map((v) => list.labels[v]));
}

function componentLine(kind, k, choose) {
  const each = kind.components[k];
  const chosen = button("", () => choose(k), { className: `component${each.stable ? "" : " unstable"}`, "data-place": `${k}` });
  chosen.append(
    make("span", { className: "line" }, make("strong", {}, each.title), make("span", { className: "numbers" }, [said(each.share), supportOf(each)].filter(Boolean).join(", "))),
    bar(each.share, mostShare()),
    make("bdi", { className: "best" }, labelsOf(kind, k, 5).join(", ")));
  chosen.setAttribute("aria-current", String(state.component === k));
  return make("li", {}, chosen);
}

// The field in which a component gets its name; a name is a line of at most 200 characters that no other has.
function renaming(kind, k, done) {
  const each = kind.components[k], input = make("input", { id: "new-name", value: each.name, autocomplete: "off", maxLength: 400 });
  const keep = () => {
    const name = input.value.trim();
    if (/(?! )[\p{C}\p{Z}]/u.test(name) || [...name].length > 200) at("said").textContent = "A name must be one line of at most 200 characters.";
    else if (name && kind.components.some((other) => other !== each && other.name === name)) at("said").textContent = `Another ${kind.one} has this name.`;
    else {
      kind.renamed ||= name !== each.name;
      each.name = name;
      at("said").textContent = "";
      at("save-names").hidden = !kind.renamed;
      done();
    }
  };
  input.addEventListener("keydown", (event) => {
    if (!["Enter", "Escape"].includes(event.key)) return;
    event.preventDefault(); // else the key would press the button that gets the focus
    if (event.key === "Enter") keep();
    else done();
  });
  return make("p", { className: "controls" }, make("label", { className: "field" }, `Name of ${kind.one} ${each.number} `, input), button("Keep", keep, { id: "keep-name" }), button("Cancel", done));
}

// The names of this kind as `countveil relabel` reads them: with the first members, by which it knows the fit.
function saveNames(kind) {
  const changed = kind.components.filter((each) => each.name || each.named);
  const names = Object.fromEntries(changed.map((each) => [each.number, { leading: each.leading, name: each.name || null }]));
  save("names.json", `${JSON.stringify({ [kind.one]: names }, null, 1)}\n`, "application/json");
  at("said").textContent = "names.json saved. To keep these names in the fit: countveil relabel FIT names.json";
}

function componentDetail(kind, k, renamed) {
  const each = kind.components[k], rows = fitted().rows;
  const rename = button("Rename", () => {
    rename.replaceWith(renaming(kind, k, renamed));
    at("new-name").focus();
  }, { id: "rename" });
  const support = supportOf(each), found = [make("div", { className: "line" }, make("h2", {}, each.title), rename)];
  found.push(paragraph(`${said(each.share)} of ${kind.whole}${support ? `; ${support}` : ""}.`));
  if (!each.stable) found.push(paragraph(`At most half of the chains found this ${kind.one}: another fit of the same data may not. Do not report it as a finding.`, "note"));
  for (const [i, list] of kind.lists.entries()) {
    const most = mostAlong(i);
    const look = (v) => button(list.labels[v], () => show({ view: "members", list: i, search: list.labels[v] }), { className: "link" });
    found.push(make("h3", {}, `${capital(list.axis)}: ${kind.measure}, and lift`));
    found.push(make("ol", { className: "bars", tabIndex: 0, "aria-label": `Members along ${list.axis}` },
      ...list[state.members][k].map((v) => line(make("bdi", { className: "name" }, look(v)), `${said(entry(list, v, k).slice(1))}, ${lift(list, v, k)}`, bar(entry(list, v, k).slice(1), most)))));
  }
  found.push(paragraph(`Lift: how many times as probable an entry is here as in all counts. By relevance, entries that are probable everywhere come later (weight 0.6, as in LDAvis).`, "soft"));
  if (kind.map) {
    found.push(make("h3", {}, "Most similar"), make("ul", { id: "nearest" }, ...kind.map.nearest[k].map((j) => make("li", {}, componentLink(kind, j)))));
  }
  for (const [heading, values] of each.beside) {
    found.push(make("h3", {}, heading), make("ul", { className: "bars" }, ...values.map(([name, value]) => line(name, value))));
  }
  if (rows) found.push(button(`${capital(rows.plural)} with most of it`, () => show({ view: "rows", rowsBy: `${k}`, search: "" }), { id: "most-of-it" }));
  found.push(button("Back to the list", () => document.querySelector("[aria-current=true]").focus(), { id: "back" }));
  return found;
}

const componentLink = (kind, k) => button(kind.components[k].title, () => show({ view: "components", component: k }), { className: "link" });

// Components as circles, similar ones near each other; the area of a circle is its share.
function mapView(panel) {
  const kind = kindOf(), most = mostShare(), height = 90 + 300 * Math.max(...kind.map.places.map(([, y]) => y));
  const drawn = shape("svg", "map", { viewBox: `0 0 400 ${height}`, role: "group", "aria-label": `Map of ${kind.many}` }), labels = [];
  for (const k of [...kind.components.keys()].sort((a, b) => kind.components[b].share[0] - kind.components[a].share[0])) {
    const each = kind.components[k], [x, y] = kind.map.places[k], [cx, cy] = [50 + 300 * x, 45 + 300 * y];
    const dot = shape("g", each.stable ? "" : "unstable", { role: "button", tabindex: 0, "aria-label": `${each.title}, ${percent(each.share[0])}` });
    const go = () => show({ view: "components", component: k }, "detail");
    dot.addEventListener("click", go);
    dot.addEventListener("keydown", (event) => { if (["Enter", " "].includes(event.key)) { event.preventDefault(); go(); } });
    const [words, label] = [shape("title", "", {}), shape("text", "", { x: cx, y: cy + 5, "aria-hidden": "true" })];
    words.textContent = `${each.title}: ${labelsOf(kind, k, 4).join(", ")}`;
    label.textContent = each.name ? `${each.number} ${[...each.name].slice(0, 14).join("")}` : each.number;
    dot.append(words, shape("circle", "", { cx, cy, r: Math.max(12, 38 * Math.sqrt(each.share[0] / most)) }));
    drawn.append(dot);
    labels.push(label);
  }
  drawn.append(...labels); // above all circles
  panel.append(
    paragraph(`${capital(kind.many)} that are similar stand near each other; the area of a circle is the ${kind.one}'s share. Two dimensions keep ${percent(kind.map.share)} of the differences: ${kind.many} far apart are different, but neighbours need not be similar. Each ${kind.one} lists those that are most similar to it.`, "soft"),
    drawn);
}

// Members that a text is found in, each with the components that it is most probable in.
function membersView(panel) {
  const kind = kindOf(), list = kind.lists[state.list], results = make("div", { id: "results" }), most = mostAlong(state.list);
  const fill = (text) => {
    state.search = text;
    const [found, more] = matches(list.labels, text, SHOWN);
    const cards = found.map((v) => make("section", { className: "card", "aria-label": list.labels[v] },
      make("h2", {}, named(list.labels[v])),
      make("ul", { className: "bars" }, ...[...list.entries[v]].sort((a, b) => b[1] - a[1]).slice(0, 6).map(([k, ...values]) =>
        line(componentLink(kind, k), `${said(values)}, ${lift(list, v, k)}`, bar(values, most))))));
    at("said").textContent = found.length ? `${found.length + more} found${more ? `, ${SHOWN} shown` : ""}.` : `Nothing found for “${text}”.`;
    results.replaceChildren(...cards);
  };
  const rows = list.labels.flatMap((label, v) => list.entries[v].map(([k, ...values]) => [label, kind.components[k].number, ...values, (values[0] / list.share[v]).toPrecision(4) * 1]));
  panel.append(
    make("div", { className: "controls" },
      ...(kind.lists.length > 1 ? [choice("along", "Along", kind.lists.map((each, i) => [i, each.axis]), state.list, (i) => show({ list: +i, search: "" }))] : []),
      field("search", `Search ${list.labels.length} ${list.plural}`, state.search, fill),
      download(list.plural, [list.axis, kind.one, kind.measure, ...ENDS(), "lift"], rows)),
    paragraph(`Each with the ${kind.many} in which it is largest: ${kind.measure}, and lift. All bars share one scale.${list.left ? ` ${list.left} more, small in every ${kind.one}, are not on this page.` : ""}`, "soft"),
    results);
  fill(state.search);
}

// Rows, by the share of one component or by their labels.
function rowsView(panel) {
  const rows = fitted().rows, kind = kindOf(), results = make("ul", { id: "results", className: "cards" });
  const fill = () => {
    const [found, more] = matches(rows.labels, at("row-search") ? at("row-search").value : "", Infinity);
    const wanted = new Set(found), k = state.rowsBy === "" ? -1 : +state.rowsBy;
    const shown = (k < 0 ? found : rows.top[k].filter((d) => wanted.has(d))).slice(0, SHOWN);
    at("said").textContent = `${k < 0 ? found.length + more : shown.length} found${k < 0 && found.length > SHOWN ? `, ${SHOWN} shown` : ""}.`;
    results.replaceChildren(...shown.map((d) => rowCard(rows, kind, d, k)));
  };
  const table = rows.labels.flatMap((label, d) => rows.entries[d].map(([k, ...values]) => [label, kind.components[k].number, ...values]));
  const by = [["", "any"], ...kind.components.map((each, k) => [k, `${each.title}: ${labelsOf(kind, k, 3).join(", ")}`])];
  panel.append(
    make("div", { className: "controls" },
      choice("rows-by", `With most of ${kind.one}`, by, state.rowsBy, (k) => { state.rowsBy = k; fill(); }),
      field("row-search", `Search ${rows.labels.length} ${rows.plural}`, "", fill),
      download(rows.plural, [rows.axis, kind.one, "share", ...ENDS()], table)),
    paragraph(`The ${kind.many} with the largest shares in each of these ${rows.plural}, from 0 to 100%.${rows.left ? ` ${rows.left} more ${rows.plural} are not on this page.` : ""} A share is estimated from the reports of one row; its interval shows how uncertain it is.`, "soft"),
    results);
  fill();
}

function rowCard(rows, kind, d, k) {
  const entries = [...rows.entries[d]].sort((a, b) => (b[0] === k) - (a[0] === k) || b[1] - a[1]);
  return make("li", { className: "card" },
    make("h2", {}, named(rows.labels[d])), paragraph(`about ${rows.size[d].toPrecision(2) * 1} expected counts`, "soft"),
    make("ul", { className: "bars" }, ...entries.map(([i, ...values]) =>
      line(componentLink(kind, i), said(values), bar(values, 1)))));
}

// How dispersed the counts are, all on the scale from 0 to 1.
function burstsView(panel) {
  const { said: words, axis, rows } = fitted().bursts;
  panel.append(paragraph(words));
  if (!rows.length) return;
  const sorted = [...rows].sort((a, b) => b[1] - a[1]), results = make("ul", { id: "results", className: "bars wide" });
  const number = (value) => value.toFixed(2);
  const fill = (text) => {
    const [found, more] = matches(sorted.map(([label]) => label), text, SHOWN);
    at("said").textContent = `${found.length + more} found${more ? `, ${SHOWN} shown` : ""}.`;
    results.replaceChildren(...found.sort((a, b) => a - b).map((i) => {
      const [label, ...values] = sorted[i], p = values.slice(0, -1);
      return line(label, `p ${said(p, number)}; variance ${values.at(-1).toPrecision(3)} times the mean`, bar(p, 1));
    }));
  };
  panel.append(
    make("div", { className: "controls" }, field("burst-search", `Search ${rows.length} labels`, "", fill),
      download("dispersions", [axis, "p", ...ENDS(), "variance_over_mean"], sorted)),
    paragraph("The largest first; bars from 0 to 1.", "soft"), results);
  fill("");
}
