/** A changed text: its changed lines with the changed words marked, and unchanged lines folded. */
import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import { type Piece, textDiff } from "./textDiff";

const CONTEXT = 2;

export function TextChange({ before, after }: { before: string; after: string }) {
  const hunks = useMemo(() => textDiff(before, after), [before, after]);
  return (
    <div className="text-sm">
      {hunks.map((hunk, at) =>
        "same" in hunk ? (
          // biome-ignore lint/suspicious/noArrayIndexKey: hunks have no identity besides their index
          <SameLines key={at} lines={hunk.same} isFirst={at === 0} isLast={at === hunks.length - 1} />
        ) : (
          // biome-ignore lint/suspicious/noArrayIndexKey: as above
          <div key={at}>
            <Side kind="removed" pieces={hunk.before} />
            <Side kind="added" pieces={hunk.after} />
          </div>
        ),
      )}
    </div>
  );
}

function SameLines({ lines, isFirst, isLast }: { lines: readonly string[]; isFirst: boolean; isLast: boolean }) {
  const { t } = useTranslation();
  const [head, tail] = [isFirst ? 0 : CONTEXT, isLast ? 0 : CONTEXT];
  const isFolded = lines.length > head + tail + 1;
  const shown = isFolded ? [lines.slice(0, head), lines.slice(lines.length - tail)] : [lines];
  return (
    <>
      <Lines lines={shown[0] ?? []} />
      {isFolded ? (
        <p className="text-xs text-ink-faint">{t("changes.sameLines", { count: lines.length - head - tail })}</p>
      ) : null}
      <Lines lines={shown[1] ?? []} />
    </>
  );
}

function Lines({ lines }: { lines: readonly string[] }) {
  if (lines.length === 0) return null;
  return <p className="pl-3.5 break-words whitespace-pre-wrap text-ink-soft">{lines.join("\n")}</p>;
}

const SIDES = {
  removed: { sign: "−", ink: "text-failed", mark: "bg-failed-soft", name: "changes.before" },
  added: { sign: "+", ink: "text-done", mark: "bg-done-soft", name: "changes.after" },
} as const;

function Side({ kind, pieces }: { kind: "removed" | "added"; pieces: readonly Piece[] }) {
  const { t } = useTranslation();
  if (pieces.length === 0) return null;
  const { sign, ink, mark, name } = SIDES[kind];
  const Tag = kind === "removed" ? "del" : "ins";
  const isWhole = pieces.every((one) => one.kind === kind);
  return (
    <p className={`break-words whitespace-pre-wrap ${ink}`}>
      <span aria-hidden>{sign} </span>
      <span className="sr-only">{t(name)} </span>
      {pieces.map((one, at) =>
        one.kind === "same" ? (
          one.text
        ) : (
          <Tag
            // biome-ignore lint/suspicious/noArrayIndexKey: pieces have no identity besides their index
            key={at}
            className={`rounded-sm no-underline ${isWhole ? "" : `font-semibold ${mark}`}`}
          >
            {one.text}
          </Tag>
        ),
      )}
    </p>
  );
}
