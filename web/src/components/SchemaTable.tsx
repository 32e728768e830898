import { useTranslation } from "react-i18next";
import type { Json, JsonObject } from "@/api/views";
import { Chip } from "./Chip";
import { Listing } from "./Listing";
import { rowsOf } from "./schemaRows";

const CHOICES_SHOWN = 12;

/** The fields of a JSON Schema as a table. */
export function SchemaTable({ schema, name }: { schema: JsonObject; name: string }) {
  const { t } = useTranslation();
  const rows = rowsOf(schema);
  if (rows.length === 0) return <p className="text-ink-soft">{t("tools.takesNothing")}</p>;
  return (
    <Listing
      name={name}
      entries={rows}
      keyOf={(one) => one.path}
      columns={[
        {
          name: t("tools.parameter"),
          cell: (one) => (
            <span className="flex flex-wrap items-center gap-2">
              <span className="font-mono">{one.path}</span>
              {one.required ? <Chip look="accent">{t("tools.required")}</Chip> : null}
            </span>
          ),
        },
        { name: t("tools.type"), cell: (one) => <span className="font-mono text-xs">{one.type}</span> },
        {
          name: t("tools.meaning"),
          cell: (one) => {
            const more = [
              one.choices.length > 0 ? t("tools.oneOf", { values: listed(one.choices) }) : "",
              one.defaultValue === undefined || one.defaultValue === null
                ? ""
                : t("tools.default", { value: JSON.stringify(one.defaultValue) }),
            ].filter(Boolean);
            if (!one.about && more.length === 0) return null;
            return (
              <span>
                {one.about}
                {more.length > 0 ? <span className="block text-xs text-ink-faint">{more.join(" · ")}</span> : null}
              </span>
            );
          },
        },
      ]}
    />
  );
}

function listed(choices: readonly Json[]): string {
  const shown = choices.slice(0, CHOICES_SHOWN).map((one) => (typeof one === "string" ? one : JSON.stringify(one)));
  return [...shown, ...(choices.length > CHOICES_SHOWN ? ["…"] : [])].join(", ");
}
