import { useTranslation } from "react-i18next";
import { ago, moment } from "./times";

/** How long ago, or how soon; to who points at it the moment itself, or what else is `told`. Never over two lines. */
export function When({ at, told }: { at: number; told?: string }) {
  const { i18n } = useTranslation();
  return (
    <time
      dateTime={new Date(at * 1000).toISOString()}
      title={told ?? moment(at, i18n.language)}
      className="whitespace-nowrap"
    >
      {ago(at, i18n.language)}
    </time>
  );
}
