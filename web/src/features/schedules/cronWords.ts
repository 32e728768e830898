/** Describe a cron expression in the language of the page; null if the description would be longer than the
 * expression. */

export type Translate = (word: string, values?: Record<string, string | number>) => string;

const MACROS: Record<string, string> = {
  "@hourly": "0 * * * *",
  "@daily": "0 0 * * *",
  "@midnight": "0 0 * * *",
  "@weekly": "0 0 * * 0",
  "@monthly": "0 0 1 * *",
  "@yearly": "0 0 1 1 *",
  "@annually": "0 0 1 1 *",
};
const MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const DAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];
const CLOCKS_MAX = 6;

/** One field: all values, a step, a range, or a list. */
type Part =
  | { is: "all" }
  | { is: "step"; step: number }
  | { is: "range"; from: number; to: number }
  | { is: "some"; values: number[] };

/** `translate` returns the translation of a key, such as `at` or `everyMinutes`. */
export function describeCron(text: string, language: string, translate: Translate): string | null {
  const fields = (MACROS[text.trim().toLowerCase()] ?? text).trim().split(/\s+/);
  if (fields.length !== 5) return null;
  const [minute, hour, date, month, day] = [
    partOf(fields[0]),
    partOf(fields[1]),
    partOf(fields[2]),
    partOf(fields[3], MONTHS, 1),
    partOf(fields[4], DAYS, 0),
  ];
  if (!minute || !hour || !date || !month || !day) return null;
  const time = timeWords(minute, hour, language, translate);
  const days = dayWords(date, day, language, translate);
  const months = monthWords(month, language, translate);
  if (time === null || days === null || months === null) return null;
  const isOnClock = minute.is === "some" && hour.is === "some";
  const everyDay = isOnClock && !days && !months ? translate("everyDay") : "";
  return [everyDay, time, days, months].filter(Boolean).join(" ");
}

function timeWords(minute: Part, hour: Part, language: string, translate: Translate): string | null {
  if (minute.is === "some" && hour.is === "some") {
    const clocks = hour.values.flatMap((h) => minute.values.map((m) => clock(h, m)));
    return clocks.length <= CLOCKS_MAX ? translate("at", { times: listed(clocks, language) }) : null;
  }
  const within = hour.is === "range" ? translate("between", { from: clock(hour.from, 0), to: clock(hour.to, 59) }) : "";
  if (minute.is === "some") {
    const at = listed(minute.values.map(String), language);
    const often = hour.is === "step" ? translate("everyHours", { hours: hour.step }) : translate("everyHour");
    return [often, translate("atMinute", { minutes: at }), within].filter(Boolean).join(" ");
  }
  if (hour.is !== "all" && hour.is !== "range") return null;
  if (minute.is === "all") return [translate("everyMinute"), within].filter(Boolean).join(" ");
  if (minute.is === "step")
    return [translate("everyMinutes", { minutes: minute.step }), within].filter(Boolean).join(" ");
  return null;
}

/** Cron fires if either the day of the month or the day of the week matches. */
function dayWords(date: Part, day: Part, language: string, translate: Translate): string | null {
  if (date.is === "step" || day.is === "step") return null;
  const dates =
    date.is === "all"
      ? ""
      : date.is === "range"
        ? translate("fromDate", { from: date.from, to: date.to })
        : translate("onDate", { dates: listed(date.values.map(String), language) });
  const days =
    day.is === "all"
      ? ""
      : day.is === "range"
        ? translate("fromDay", { from: dayName(day.from, language), to: dayName(day.to, language) })
        : translate("onDay", {
            days: listed(
              day.values.map((one) => dayName(one, language)),
              language,
            ),
          });
  return dates && days ? translate("either", { one: dates, other: days }) : dates || days;
}

function monthWords(month: Part, language: string, translate: Translate): string | null {
  if (month.is === "all") return "";
  if (month.is === "step") return null;
  if (month.is === "range")
    return translate("fromMonth", { from: monthName(month.from, language), to: monthName(month.to, language) });
  return translate("inMonth", {
    months: listed(
      month.values.map((one) => monthName(one, language)),
      language,
    ),
  });
}

function partOf(text: string | undefined, names: readonly string[] = [], first = 0): Part | null {
  if (text === undefined) return null;
  if (text === "*") return { is: "all" };
  const step = /^\*\/(\d+)$/.exec(text);
  if (step) return { is: "step", step: Number(step[1]) };
  const range = /^(\w+)-(\w+)$/.exec(text);
  if (range) {
    const [from, to] = [numberOf(range[1], names, first), numberOf(range[2], names, first)];
    return from === null || to === null ? null : { is: "range", from, to };
  }
  const values = text.split(",").map((one) => numberOf(one, names, first));
  return values.every((one) => one !== null) ? { is: "some", values } : null;
}

function numberOf(text: string | undefined, names: readonly string[], first: number): number | null {
  if (text === undefined) return null;
  if (/^\d+$/.test(text)) return Number(text);
  const at = names.indexOf(text.toUpperCase());
  return at < 0 ? null : at + first;
}

const clock = (hour: number, minute: number) => `${String(hour).padStart(2, "0")}:${String(minute).padStart(2, "0")}`;

function listed(words: string[], language: string): string {
  return new Intl.ListFormat(language, { type: "conjunction" }).format(words);
}

/** Day 0 and day 7 are Sunday; 4 January 1970 was one. */
const dayName = (day: number, language: string) =>
  new Intl.DateTimeFormat(language, { weekday: "long", timeZone: "UTC" }).format(
    new Date((3 + (day % 7)) * 86_400_000),
  );

const monthName = (month: number, language: string) =>
  new Intl.DateTimeFormat(language, { month: "long", timeZone: "UTC" }).format(new Date(Date.UTC(2000, month - 1, 1)));
