/** Words of the interface, in the language of whoever looks. Texts of definitions are shown in it too, where they have it. */
import i18next from "i18next";
import { initReactI18next } from "react-i18next";
import type { Text } from "@/api/views";
import de from "./de.json";
import en from "./en.json";

export const LANGUAGES = ["en", "de"] as const;
export type Language = (typeof LANGUAGES)[number];
const KEPT_AS = "pointsman.language";

/** What was chosen before, else the first language of the browser that we have. */
function preferred(): Language {
  const wishes = [localStorage.getItem(KEPT_AS) ?? "", ...navigator.languages].map((wish) => wish.slice(0, 2));
  return wishes.map((wish) => LANGUAGES.find((one) => one === wish)).find((one) => one !== undefined) ?? "en";
}

export function startLanguages(): void {
  void i18next.use(initReactI18next).init({
    resources: { en: { translation: en }, de: { translation: de } },
    lng: preferred(),
    fallbackLng: "en",
    interpolation: { escapeValue: false },
    returnNull: false,
  });
  document.documentElement.lang = i18next.language;
}

export function speak(language: Language): void {
  localStorage.setItem(KEPT_AS, language);
  document.documentElement.lang = language;
  void i18next.changeLanguage(language);
}

/** A text of a definition in the language of the page, else in English, else in whichever it has. */
export function textIn(text: Text | null | undefined, language: string, otherwise = ""): string {
  if (text === null || text === undefined) return otherwise;
  if (typeof text === "string") return text || otherwise;
  return text[language] ?? text.en ?? Object.values(text)[0] ?? otherwise;
}
