import { useTranslation } from "react-i18next";
import { ago, moment } from "./times";

/** A relative time on one line; the tooltip shows the exact time, or `title` if given. */
export function RelativeTime({ at, title }: { at: number; title?: string }) {
  const { i18n } = useTranslation();
  return (
    <time
      dateTime={new Date(at * 1000).toISOString()}
      title={title ?? moment(at, i18n.language)}
      className="whitespace-nowrap"
    >
      {ago(at, i18n.language)}
    </time>
  );
}
