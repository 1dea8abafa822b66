// What a study asks besides and no noise protects: the rules of countveil/privacy/_covariates.py, in its words.
const DECIMAL = /^-?(0|[1-9][0-9]{0,8})(\.[0-9]{0,5}[1-9])?$/;
const MOST_LISTED = 12, LONGEST_LIST = 200;

// A decimal in its shortest spelling, such as 42 for +042.0; other text as it is.
function spelt(text) {
  const found = /^([+-]?)([0-9]+)(?:\.([0-9]*))?$/.exec(text.replace(BLANK, ""));
  if (!found) return text;
  const [, sign, digits, part = ""] = found, whole = digits.replace(/^0+/, "") || "0";
  let end = part.length;
  while (end && part[end - 1] === "0") end--;
  const number = end ? `${whole}.${part.slice(0, end)}` : whole;
  return sign === "-" && number !== "0" ? `-${number}` : number;
}

function millionths(decimal) {
  const [whole, part = ""] = decimal.split(".");
  return BigInt(whole + part.padEnd(6, "0"));
}

// Of a value as `spelt` gives it.
function isAllowed({ values, lowest, highest }, value) {
  if (values) return values.includes(value);
  if (!DECIMAL.test(value)) return false;
  const number = millionths(value);
  return (lowest === undefined || number >= millionths(lowest)) && (highest === undefined || number <= millionths(highest));
}

// What a covariate may be, in words; what is long is not listed to its end.
function allowedOf({ values, lowest, highest }) {
  if (!values) {
    const key = highest === undefined ? (lowest === undefined ? "number" : "number_from") : "number_to";
    return say(lowest !== undefined && highest !== undefined ? "number_between" : key, { lowest, highest });
  }
  const length = (text) => Array.from(text).length;
  if (values.length <= MOST_LISTED && length(values.join(", ")) <= LONGEST_LIST) return say("one_of", { values: values.join(", ") });
  let total = 0;
  const some = values.slice(0, MOST_LISTED).filter((value) => (total += length(value)) <= LONGEST_LIST);
  return say("one_of_many", { number: values.length, values: some.join(", ") });
}

// What a person stated, from what they entered, both in the study's order; refuses what is missing or not allowed.
function statedAs(covariates, entered) {
  return covariates.map((one, place) => {
    const text = entered[place].replace(BLANK, ""), value = one.values ? text : spelt(text), allowed = allowedOf(one);
    if (!text) throw new Refused("covariate_missing", { name: one.name, allowed });
    if (isAllowed(one, value)) return value;
    throw new Refused("covariate_wrong", { name: one.name, rule: say(one.values ? "must_be" : "must_be_decimal", { allowed }) });
  });
}
