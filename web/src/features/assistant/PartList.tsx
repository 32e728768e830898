/** The parts of a proposal, each with a checkbox. */
import { useTranslation } from "react-i18next";
import type { Operation } from "@/features/editor/document/operations";
import { aboutOf } from "./parts";

export function PartList(props: {
  parts: readonly Operation[];
  refused: ReadonlySet<number>;
  dropped: ReadonlySet<number>;
  onRefuse: (refused: ReadonlySet<number>) => void;
}) {
  const { t } = useTranslation();
  const { parts, refused, dropped } = props;
  const turn = (at: number) => {
    const next = new Set(refused);
    if (!next.delete(at)) next.add(at);
    props.onRefuse(next);
  };
  return (
    <fieldset>
      <legend className="font-medium">{t("assistant.parts")}</legend>
      <ul className="mt-1 divide-y divide-line rounded-md border border-line">
        {parts.map((part, at) => {
          const { name, field } = aboutOf(part);
          const isDropped = dropped.has(at);
          return (
            // biome-ignore lint/suspicious/noArrayIndexKey: parts are identified by position
            <li key={at}>
              <label className="flex min-h-8 cursor-pointer items-start gap-2 px-2 py-1.5 has-disabled:cursor-default">
                <input
                  type="checkbox"
                  className="mt-0.5 size-4 shrink-0"
                  checked={!refused.has(at) && !isDropped}
                  disabled={isDropped}
                  onChange={() => turn(at)}
                />
                <span className={`min-w-0 break-words ${refused.has(at) || isDropped ? "text-ink-faint" : ""}`}>
                  {t(`assistant.part.${part.op}`)} <bdi className="font-medium">{name}</bdi>
                  {field ? <span className="font-mono text-xs text-ink-soft"> {field}</span> : null}
                  {isDropped ? <span className="block text-xs">{t("assistant.falls")}</span> : null}
                </span>
              </label>
            </li>
          );
        })}
      </ul>
    </fieldset>
  );
}
