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

function fraction(text) {
  const [num, den = "1"] = text.split("/");
  return { num: BigInt(num), den: BigInt(den) };
}

function reduced(num, den) {
  let a = num, b = den;
  while (b) [a, b] = [b, a % b];
  return a ? { num: num / a, den: den / a } : { num: 0n, den: 1n };
}

const plus = (x, y) => reduced(x.num * y.den + y.num * x.den, x.den * y.den);
const times = (x, y) => reduced(x.num * y.num, x.den * y.den);
const over = (x, y) => reduced(x.num * y.den, x.den * y.num);
const rateOf = (level) => over(fraction(level.epsilon), fraction(level.precision));

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
  obtain(study, title, record, level, make, anew) {
    return this.turn(async ({ settings, releases }) => {
      const name = await this.named(releases, record), key = hex(this.digest("record", name));
      const known = await asked(releases.index("record").getAll(key));
      const last = known.filter((e) => e.study === study && e.epsilon === level.epsilon && e.precision === level.precision).at(-1);
      if (last && !(anew && last.gone)) {
        if (anew) await asked(releases.put({ ...last, anew: true }));
        return { ...last, again: true };
      }
      Ledger.check(known, study, level, anew, await asked(settings.get("limit")));
      const entry = {
        record: key, study, title, epsilon: level.epsilon, precision: level.precision, turn: (last?.turn ?? 0) + 1,
        anew, made: new Date().toISOString(), gone: null, report: make(this.participant(study, name)),
      };
      entry.number = await asked(releases.add(entry));
      return { ...entry, again: false };
    });
  }

  // The report, after recording on disk that it left.
  handOver(number) {
    return this.turn(async ({ settings, releases }) => {
      const stored = await asked(releases.get(number));
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
    const spent = Ledger.sum(gone);
    if (!limit) {
      if (gone.length) throw new Refused("no_limit");
      return;
    }
    const total = plus(spent, rateOf(level)), most = rateOf(limit);
    if (total.num * most.den > most.num * total.den) {
      const precision = fraction(limit.precision);
      throw new Refused("past_limit", {
        limit: shown(fraction(limit.epsilon)), precision: shown(precision),
        total: shown(times(total, precision)), spent: shown(times(spent, precision)),
      });
    }
  }

  static sum(entries) {
    return entries.filter((entry) => entry.gone).reduce((total, entry) => plus(total, rateOf(entry)), { num: 0n, den: 1n });
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

  setLimit(epsilon, precision) {
    return this.turn(({ settings }) => asked(settings.put({ epsilon, precision }, "limit")));
  }
}

// A fraction for reading: exact where that is short.
function shown({ num, den }) {
  for (let digits = 0n; digits <= 6n; digits += 1n) {
    const scaled = num * 10n ** digits;
    if (scaled % den) continue;
    const whole = (scaled / den).toString().padStart(Number(digits) + 1, "0");
    return digits ? `${whole.slice(0, -Number(digits))}.${whole.slice(-Number(digits))}` : whole;
  }
  return num <= 9999n && den <= 9999n ? `${num}/${den}` : (Number((num * 10n ** 9n) / den) / 1e9).toPrecision(6);
}

// A positive decimal as the fraction that the ledger keeps, or null.
function decimal(text) {
  const found = /^([0-9]{1,9})(?:\.([0-9]{1,9}))?$/.exec(text.trim());
  if (!found) return null;
  const digits = found[2] ?? "";
  const { num, den } = reduced(BigInt(found[1] + digits), 10n ** BigInt(digits.length));
  return num ? (den === 1n ? `${num}` : `${num}/${den}`) : null;
}
