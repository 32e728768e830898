// @vitest-environment happy-dom
import i18next from "i18next";
import { beforeAll, describe, expect, it } from "vitest";
import { LANGUAGES, startLanguages, switchLanguage } from "@/i18n";
import { describeCron } from "./cronWords";

function words(cron: string, language: "en" | "de" = "en"): string | null {
  const t = i18next.getFixedT(language);
  return describeCron(cron, language, (word, values) => t(`cron.${word}`, values ?? {}));
}

describe("cron expression in words", () => {
  beforeAll(async () => {
    await startLanguages();
    for (const one of LANGUAGES) await switchLanguage(one);
  });

  it.each([
    ["* * * * *", "every minute"],
    ["*/15 * * * *", "every 15 minutes"],
    ["*/10 8-17 * * 1-5", "every 10 minutes between 08:00 and 17:59 from Monday to Friday"],
    ["5 * * * *", "every hour at minute 5"],
    ["0 */6 * * *", "every 6 hours at minute 0"],
    ["0 8 * * *", "every day at 08:00"],
    ["@daily", "every day at 00:00"],
    ["30 7,19 * * MON,THU", "at 07:30 and 19:30 on Monday and Thursday"],
    ["0 9 1 * *", "at 09:00 on day 1 of the month"],
    ["0 9 1,15 1,7 *", "at 09:00 on day 1 and 15 of the month in January and July"],
    ["0 9 13 * 5", "at 09:00 on day 13 of the month or on Friday"],
    ["0 0 * * 7", "at 00:00 on Sunday"],
  ])("%s", (cron, said) => {
    expect(words(cron)).toBe(said);
  });

  it("is in the language of the page", () => {
    expect(words("0 8 * * 1-5", "de")).toBe("um 08:00 von Montag bis Freitag");
    expect(words("0 8 * * *", "de")).toBe("jeden Tag um 08:00");
  });

  it("is null for long or invalid expressions", () => {
    for (const cron of ["0 8", "7-50/3 * * * *", "*/5 1,2 * * *", "0 8 L * *", "", "every day"])
      expect(words(cron)).toBeNull();
  });
});
