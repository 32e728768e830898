/** Amounts as people write them in the language of the page. */
import i18next from "i18next";

/** Dollars, with as many places as the price of one call needs. */
export function money(usd: number): string {
  return new Intl.NumberFormat(i18next.language, {
    style: "currency",
    currency: "USD",
    minimumFractionDigits: 4,
    maximumFractionDigits: 4,
  }).format(usd);
}

export function amount(value: number, digits = 0): string {
  return new Intl.NumberFormat(i18next.language, { maximumFractionDigits: digits }).format(value);
}
