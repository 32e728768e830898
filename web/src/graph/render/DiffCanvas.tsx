/** Two definitions in one picture: added, removed and changed elements, marked by signs as well as by colour. */
import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import type { Definition } from "@/api/views";
import { type Change, changesBetween, type Mark, mergedDefinition } from "@/graph/model/diff";
import { pictureOf } from "@/graph/model/picture";
import { Canvas } from "./Canvas";
import { MARKS, type Marks } from "./changeMarks";

export function DiffCanvas(props: {
  before: Definition;
  after: Definition;
  /** Changes, if the caller has already computed them. */
  changes?: readonly Change[];
  picked?: string | null;
  onPick?: (node: string | null) => void;
}) {
  const { t, i18n } = useTranslation();
  const { before, after, changes } = props;
  const picture = useMemo(
    () => pictureOf(mergedDefinition(before, after), i18n.language, t),
    [before, after, i18n.language, t],
  );
  const marks = useMemo<Marks>(
    () => new Map((changes ?? changesBetween(before, after)).map((one) => [`${one.kind} ${one.id}`, one.mark])),
    [before, after, changes],
  );
  return (
    <div className="flex h-full flex-col">
      <ul aria-label={t("diff.legend")} className="flex flex-wrap gap-x-4 gap-y-1 border-b border-line px-3 py-1.5">
        {(Object.keys(MARKS) as Mark[]).map((mark) => (
          <li key={mark} className="flex items-center gap-1.5 text-xs text-ink-soft">
            <MarkSign mark={mark} /> {t(`diff.${mark}`)}
          </li>
        ))}
      </ul>
      <div className="min-h-0 flex-1">
        <Canvas
          picture={picture}
          marks={marks}
          {...(props.picked === undefined ? {} : { picked: props.picked })}
          {...(props.onPick ? { onPick: props.onPick } : {})}
        />
      </div>
    </div>
  );
}

export function MarkSign({ mark }: { mark: Mark }) {
  const look = MARKS[mark];
  return (
    <span
      aria-hidden
      className={`flex size-4.5 shrink-0 items-center justify-center rounded-full text-sm leading-none font-bold ${look.soft} ${look.ink}`}
    >
      {look.sign}
    </span>
  );
}
