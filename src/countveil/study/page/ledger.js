// What was released about which record, kept in this browser: the rules of countveil/privacy/ledger.py.
// Every decision is one read-write transaction, and those of all tabs take turns; what it stored is on disk
// before anybody sees it.
const LEDGER = "countveil-ledger";

// Default_Ignorable_Code_Point of Unicode, and the marks around interlinear annotations.
const INVISIBLE = new RegExp("[\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200f\\u202a-\\u202e" +
  "\\u2060-\\u206f\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff0-\\ufffb\\u{1bca0}-\\u{1bca3}\\u{1d173}-\\u{1d17a}" +
  "\\u{e0000}-\\u{e0fff}]", "gu");
const BLANKS = /[\x00-\x20\x7f-\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u2800\u3000]+/g;

// A record's name as a person sees it: without invisible characters, and with single spaces.
function seen(name) {
  return name.replace(INVISIBLE, "").replace(BLANKS, " ").replace(/^ | $/g, "");
}

// A record's name in one form: the twin of countveil/privacy/names.py.
function normalised(name) {
  const shown = seen(name);
  if (!shown || !shown.isWellFormed()) throw new Refused("no_name");
  return Array.from(shown.normalize("NFC"), (c) => c.toLowerCase().toUpperCase().toLowerCase()).join("").normalize("NFC");
}

const NONE = { num: 0n, den: 1n };
const isOfRho = (level) => level.rho !== undefined;
const rateOf = (level) => over(fraction(level.epsilon), fraction(level.precision));

// The rho for one unit in one cell that noise keeps, whatever its promise is stated in: that, or (epsilon/N)^2/2.
function rhoOf(level) {
  if (isOfRho(level)) return fraction(level.rho);
  return times({ num: 1n, den: 2n }, times(rateOf(level), rateOf(level)));
}

// The numbers of a level's promise, as text.
const numbersOf = (level) => (isOfRho(level) ? { rho: level.rho } : { epsilon: level.epsilon, precision: level.precision });
const isSame = (x, y) => x.rho === y.rho && x.epsilon === y.epsilon && x.precision === y.precision;
const sumOf = (levels, numberOf) => levels.reduce((total, level) => plus(total, numberOf(level)), NONE);

function asked(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

class Ledger {
  static async open(factory, entropy) {
    const request = factory.open(LEDGER, 1);
    request.onupgradeneeded = () => {
      request.result.createObjectStore("settings");
      const releases = request.result.createObjectStore("releases", { keyPath: "number", autoIncrement: true });
      releases.createIndex("record", "record");
    };
    const ledger = new Ledger();
    ledger.database = await asked(request);
    ledger.secret = await ledger.turn(async ({ settings }) => {
      const known = await asked(settings.get("secret"));
      if (known) return known;
      const made = entropy(32);
      await asked(settings.put(made, "secret"));
      return made;
    });
    return ledger;
  }

  // One transaction that no other tab writes in; on disk when the promise resolves.
  async turn(work) {
    const transaction = this.database.transaction(["settings", "releases"], "readwrite", { durability: "strict" });
    const done = new Promise((resolve, reject) => {
      transaction.oncomplete = resolve;
      transaction.onabort = () => reject(transaction.error ?? new Refused("ledger_failed"));
    });
    done.catch(() => {});
    let result;
    try {
      result = await work({
        settings: transaction.objectStore("settings"),
        releases: transaction.objectStore("releases"),
      });
    } catch (error) {
      try { transaction.abort(); } catch { /* it is over already */ }
      throw error;
    }
    await done;
    return result;
  }

  digest(purpose, ...parts) {
    return hmac(this.secret, new TextEncoder().encode([purpose, ...parts].join("\0")));
  }

  // The form of a record's name that its digest is of: as it was given, where an older ledger has it so.
  async named(releases, record) {
    const older = record.trim().normalize("NFC");
    const found = await asked(releases.index("record").count(hex(this.digest("record", older))));
    return found ? older : normalised(record);
  }

  participant(study, record) {
    return hex(this.digest("participant", study, record).slice(0, 16));
  }

  // The stored report about a record under a study and level, or else what `make` returns for its token, stored.
  // Asking again gives the last that left, or else one that did not; asking anew only one that did not.
  // `mend` gives the report that is kept in place of a stored one that did not leave, or the same.
  obtain(study, title, record, level, make, mend, anew) {
    return this.turn(async ({ settings, releases }) => {
      const name = await this.named(releases, record), key = hex(this.digest("record", name));
      const known = await asked(releases.index("record").getAll(key));
      const found = known.filter((entry) => entry.study === study && isSame(entry, level));
      const gone = found.filter((entry) => entry.gone), kept = found.filter((entry) => !entry.gone);
      const stored = (anew || !gone.length ? kept : gone).at(-1);
      if (stored) {
        const again = { ...stored, anew: stored.anew || anew, report: mend(stored) };
        await asked(releases.put(again));
        return { ...again, again: true };
      }
      Ledger.check(known, study, level, anew, await asked(settings.get("limit")));
      const entry = {
        record: key, study, title, ...numbersOf(level), turn: found.length + 1,
        anew, made: new Date().toISOString(), gone: null, report: make(this.participant(study, name)),
      };
      entry.number = await asked(releases.add(entry));
      return { ...entry, again: false };
    });
  }

  // The report, after recording on disk that it left; refused where it is no longer the one that was shown.
  handOver(number, seen) {
    return this.turn(async ({ settings, releases }) => {
      const stored = await asked(releases.get(number));
      if (stored.report !== seen) throw new Refused("report_changed");
      if (!stored.gone) {
        const known = await asked(releases.index("record").getAll(stored.record));
        Ledger.check(known, stored.study, stored, stored.anew, await asked(settings.get("limit")));
        await asked(releases.put({ ...stored, gone: new Date().toISOString() }));
      }
      return stored.report;
    });
  }

  // After the study's address accepted the report.
  accepted(number) {
    return this.turn(async ({ releases }) => {
      const stored = await asked(releases.get(number));
      await asked(releases.put({ ...stored, sent: new Date().toISOString() }));
    });
  }

  // Refuses one more release about a record at a level: without purpose, or past the limit.
  static check(known, study, level, anew, limit) {
    const gone = known.filter((entry) => entry.gone);
    if (!anew && gone.some((entry) => entry.study === study)) throw new Refused("released_once");
    if (!limit) {
      if (gone.length) throw new Refused("no_limit");
      return;
    }
    const total = Ledger.against(limit, [...gone, level]), most = fraction(limit.rho ?? limit.epsilon);
    if (total.num * most.den <= most.num * total.den) return;
    const told = { limit: shown(most), total: shown(total), spent: shown(Ledger.against(limit, gone)) };
    if (isOfRho(limit)) throw new Refused("past_limit_rho", told);
    throw new Refused("past_limit", { ...told, precision: shown(fraction(limit.precision)) });
  }

  // What releases at these levels add up to in the numbers of the limit; one of epsilon has none for those of rho.
  static against(limit, levels) {
    if (isOfRho(limit)) return sumOf(levels, rhoOf);
    if (levels.some(isOfRho)) throw new Refused("limit_not_rho");
    return times(sumOf(levels, rateOf), fraction(limit.precision));
  }

  entries(record) {
    return this.turn(async ({ releases }) => {
      if (record === undefined) return asked(releases.getAll());
      const name = await this.named(releases, record);
      return asked(releases.index("record").getAll(hex(this.digest("record", name))));
    });
  }

  limit() {
    return this.turn(({ settings }) => asked(settings.get("limit")));
  }

  // {epsilon, precision}, or {rho}
  setLimit(limit) {
    return this.turn(({ settings }) => asked(settings.put(limit, "limit")));
  }
}
