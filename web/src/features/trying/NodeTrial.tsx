/** What can be tried of the node that is picked: run it, run to it, pin what it brought, stop before it. */
import { CircleDot, Pin, PinOff, Play, SkipForward } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import type { DefinitionNode, Json } from "@/api/views";
import { Button } from "@/components/Button";
import { useNodeName } from "@/graph/called";
import { isPinnable } from "./last";
import { tryoutOf, useTryout } from "./tryout";
import type { TrialVerbs } from "./useTrial";

export function NodeTrial({ id, node, verbs }: { id: string; node: DefinitionNode; verbs: TrialVerbs }) {
  const { t } = useTranslation();
  const called = useNodeName();
  const pinned = useTryout(id, (now) => now.pins[node.id]);
  const isStop = useTryout(id, (now) => now.breakpoints.includes(node.id));
  const acts = tryoutOf(id).getState();
  const brought = verbs.brought(node.id);
  const isBusy = verbs.run.isPending;
  return (
    <section aria-label={t("try.node", { node: called(node.id) })} className="rounded-md border border-line p-3">
      <h3 className="line-clamp-2 font-medium wrap-anywhere" title={node.id}>
        <bdi>{called(node.id)}</bdi>
      </h3>
      <div className="mt-2 flex flex-wrap gap-2">
        <Button onClick={() => verbs.run.mutate({ until: node.id, fresh: false })} disabled={isBusy}>
          <Play className="size-4" aria-hidden /> {t("try.onlyThis")}
        </Button>
        <Button onClick={() => verbs.run.mutate({ until: node.id })} disabled={isBusy}>
          <SkipForward className="size-4" aria-hidden /> {t("try.toThis")}
        </Button>
        <Button aria-pressed={isStop} onClick={() => acts.stopAt(node.id, !isStop)}>
          <CircleDot className={`size-4 ${isStop ? "text-failed" : ""}`} aria-hidden />{" "}
          {isStop ? t("try.unstop") : t("try.stop")}
        </Button>
        {!isPinnable(node.type) ? null : pinned === undefined ? (
          <Button
            onClick={() => acts.pin(node.id, brought ?? {})}
            title={brought === undefined ? t("try.nothingKnown") : t("try.pinAbout")}
          >
            <Pin className="size-4" aria-hidden /> {t("try.pin")}
          </Button>
        ) : (
          <Button onClick={() => acts.unpin(node.id)}>
            <PinOff className="size-4" aria-hidden /> {t("try.unpin")}
          </Button>
        )}
      </div>
      <p className="mt-2 text-xs text-ink-faint">{t("try.onlyThisAbout")}</p>
      {pinned === undefined ? null : (
        <PinnedValue key={node.id} value={pinned} onChange={(v) => acts.pin(node.id, v)} />
      )}
    </section>
  );
}

/** The value as JSON; what cannot be read is told, and the last one that could stays. */
function PinnedValue({ value, onChange }: { value: Json; onChange: (value: Json) => void }) {
  const { t } = useTranslation();
  const [text, setText] = useState(() => JSON.stringify(value, null, 2));
  const [isWrong, setWrong] = useState(false);
  return (
    <label className="mt-2 block">
      <span className="text-ink-soft">{t("try.brings")}</span>
      <textarea
        value={text}
        spellCheck={false}
        aria-invalid={isWrong}
        rows={Math.min(10, text.split("\n").length + 1)}
        onChange={(event) => {
          setText(event.target.value);
          try {
            onChange(JSON.parse(event.target.value) as Json);
            setWrong(false);
          } catch {
            setWrong(true);
          }
        }}
        className="mt-1 w-full rounded-md border border-line-strong bg-sunken p-2 font-mono text-xs"
      />
      {isWrong ? <span className="text-xs text-failed">{t("editor.noJson")}</span> : null}
    </label>
  );
}
