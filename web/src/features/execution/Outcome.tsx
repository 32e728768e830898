import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { executionAt } from "@/api/queries";
import type { Execution, Json } from "@/api/views";
import { Loading } from "@/components/Told";
import { Section, Value } from "./Value";

/** What came of an execution, or how it stood after a row of its journal. */
export function Outcome({ execution: one, upTo }: { execution: Execution; upTo: number | null }) {
  const { t } = useTranslation();
  const then = useQuery({ ...executionAt(one.executionId, upTo ?? 0), enabled: upTo !== null });
  const shown = upTo === null ? one : then.data;
  if (!shown) return <Loading />;
  return (
    <div className="p-4">
      {shown.errors.length > 0 ? (
        <Section title={t("execution.errors")}>
          <ul className="space-y-2">
            {shown.errors.map((why) => (
              <li
                key={`${why.code} ${why.nodeId} ${why.message}`}
                className="rounded-md border border-failed/40 bg-failed-soft p-2.5"
              >
                <p className="font-medium break-words text-failed">
                  {why.nodeId ? <span className="font-mono text-xs">{why.nodeId}: </span> : null}
                  {why.message}
                </p>
                {why.hint ? <p className="text-sm text-ink-soft">{why.hint}</p> : null}
                <p className="font-mono text-xs text-ink-faint">{why.code}</p>
              </li>
            ))}
          </ul>
        </Section>
      ) : null}
      {shown.output === null ? null : (
        <Section title={t("execution.output")}>
          <Fields value={shown.output} />
        </Section>
      )}
      <Section title={t("execution.input")}>
        <Fields value={shown.input} />
      </Section>
      <Section title={upTo === null ? t("execution.state") : t("execution.stateThen", { row: upTo })}>
        <Fields value={shown.state} />
      </Section>
    </div>
  );
}

/** An object field by field, anything else as it is. */
function Fields({ value }: { value: Json }) {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return <Value value={value} />;
  return (
    <dl className="space-y-2">
      {Object.entries(value).map(([name, part]) => (
        <div key={name}>
          <dt className="font-mono text-xs text-ink-soft break-words">{name}</dt>
          <dd>
            <Value value={part} />
          </dd>
        </div>
      ))}
    </dl>
  );
}
