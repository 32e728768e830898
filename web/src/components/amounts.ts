/** Amounts in the number format of the page's language. */
import i18next from "i18next";

/** Dollars with four decimals, because one call costs little. */
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
