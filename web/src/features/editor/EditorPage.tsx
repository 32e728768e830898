import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useBlocker, useNavigate, useParams } from "@tanstack/react-router";
import { Copy, ListChecks, Play, Redo2, Save, Trash2, Undo2 } from "lucide-react";
import { useEffect, useMemo, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { useStore } from "zustand";
import { type ApiError, answerOf, ask, type Problem } from "@/api/http";
import { clone, definition, languageSchema, removeWorkflow, workflow } from "@/api/queries";
import type { Definition, WorkflowDetail } from "@/api/views";
import { Button } from "@/components/Button";
import { Failed, Loading, Problems } from "@/components/Told";
import { iconOf } from "@/graph/looks";
import { textIn } from "@/i18n";
import { StartDialog } from "../workflows/StartDialog";
import { type DraftStore, makeDraft } from "./draft";
import { DRAGGED, EditorCanvas, type Picked } from "./EditorCanvas";
import { firstConfig, PALETTE } from "./language";
import { EdgeForm, NodeForm } from "./NodeForm";
import { freshId, type Operation } from "./operations";

const CHECKS_MS = 400;
const KEPT_AS = "pointsman.draft.";

interface Edited {
  revision: number;
  document: unknown;
  text: string;
  problems: Problem[];
  losses: Problem[];
}

export function EditorPage() {
  const { id } = useParams({ from: "/workflows/$id" });
  const saved = useQuery({ ...workflow(id), refetchOnWindowFocus: false });
  const native = useQuery({ ...definition(id), refetchOnWindowFocus: false });
  const why = saved.error ?? native.error;
  if (why)
    return (
      <div className="p-6">
        <Failed why={why} />
      </div>
    );
  if (!saved.data || !native.data) return <Loading />;
  return <Editor key={id} saved={saved.data.value} etag={saved.data.etag} native={native.data} />;
}

function Editor(props: { saved: WorkflowDetail; etag: string | null; native: Definition }) {
  const { saved, native } = props;
  const id = saved.id;
  const { t, i18n } = useTranslation();
  const client = useQueryClient();
  const navigate = useNavigate();
  const etag = useRef(props.etag);
  const store = useMemo(() => startedFrom(id, native, saved.revision), [id, native, saved.revision]);
  const draft = useStore(store);
  const schema = useQuery(languageSchema());
  const [picked, setPicked] = useState<Picked | null>(null);
  const [starting, setStarting] = useState(false);
  const isChanged = draft.done.length > 0;
  const checked = useChecked(id, draft.done, saved.problems);
  useKept(id, saved.revision, store);
  useKeys(store);
  useBlocker({
    shouldBlockFn: () => isChanged && !window.confirm(t("editor.leaveSure")),
    enableBeforeUnload: false,
  });

  const save = useMutation<Edited, ApiError, boolean>({
    mutationFn: async (draftOnly) => {
      const body = { operations: draft.done.flat(), apply: true, draft: draftOnly };
      const headers = etag.current ? { "if-match": etag.current } : {};
      return (await answerOf<Edited>(`/api/workflows/${encodeURIComponent(id)}/edit`, { body, headers })).value;
    },
    onSuccess: async () => {
      localStorage.removeItem(KEPT_AS + id);
      const [fresh, next] = await Promise.all([
        client.fetchQuery({ ...workflow(id), staleTime: 0 }),
        client.fetchQuery({ ...definition(id), staleTime: 0 }),
      ]);
      etag.current = fresh.etag;
      store.getState().restart(next);
      await client.invalidateQueries({ queryKey: ["workflows"] });
    },
  });
  const remove = useMutation({
    mutationFn: () => removeWorkflow(id),
    onSuccess: async () => {
      store.getState().restart(native);
      await client.invalidateQueries({ queryKey: ["workflows"] });
      await navigate({ to: "/workflows" });
    },
  });

  const copy = useMutation<{ id: string }, ApiError, string>({
    mutationFn: (as) => clone(id, as),
    onSuccess: async (made) => {
      await client.invalidateQueries({ queryKey: ["workflows"] });
      await navigate({ to: "/workflows/$id", params: { id: made.id } });
    },
  });
  const cloned = () => {
    const as = window.prompt(t("editor.cloneAs"), id.replace(/^builtin:/, "my-"));
    if (as) copy.mutate(as);
  };

  const put = (type: string) => {
    const fresh = freshId(draft.shown, type);
    const after = picked?.kind === "node" ? picked.id : undefined;
    const changes: Operation[] = [{ op: "add_node", node: { id: fresh, type, config: firstConfig(type) } }];
    if (after) changes.push({ op: "connect", edge: { source: after, target: fresh } });
    draft.act(...changes);
    setPicked({ kind: "node", id: fresh });
  };
  const jump = (problem: Problem) => {
    const at = /^\/(nodes|edges)\/(\d+)/.exec(problem.pointer);
    const node = at?.[1] === "nodes" ? draft.shown.nodes[Number(at[2])] : undefined;
    if (node) setPicked({ kind: "node", id: node.id });
  };
  const errors = checked.problems.filter((one) => one.severity === "error").length;
  const node = picked?.kind === "node" ? draft.shown.nodes.find((one) => one.id === picked.id) : undefined;

  return (
    <div className="flex h-full flex-col">
      <div className="flex flex-wrap items-center gap-2 border-b border-line bg-surface px-4 py-2">
        <h1 className="min-w-0 font-semibold break-words">
          <bdi>{textIn(draft.shown.name, i18n.language, id)}</bdi>
        </h1>
        <span className="text-xs text-ink-faint">
          {t("workflows.revision", { revision: saved.revision })} · {t(`dialect.${saved.dialect}`, saved.dialect)}
          {isChanged ? (
            <span className="text-waiting"> · {t("editor.unsaved", { count: draft.done.length })}</span>
          ) : null}
        </span>
        <div className="ml-auto flex flex-wrap gap-1">
          <Button
            kind="quiet"
            onClick={draft.undo}
            disabled={!isChanged}
            aria-label={t("editor.undo")}
            title={t("editor.undo")}
          >
            <Undo2 className="size-4" />
          </Button>
          <Button
            kind="quiet"
            onClick={draft.redo}
            disabled={draft.undone.length === 0}
            aria-label={t("editor.redo")}
            title={t("editor.redo")}
          >
            <Redo2 className="size-4" />
          </Button>
          <Link
            to="/executions"
            search={{ workflow: id }}
            className="inline-flex h-8 items-center gap-1.5 rounded-md px-3 font-medium text-ink-soft hover:bg-sunken"
          >
            <ListChecks className="size-4" /> <span className="max-sm:sr-only">{t("shell.executions")}</span>
          </Link>
          <Button
            kind={saved.builtIn ? "plain" : "quiet"}
            onClick={cloned}
            aria-label={t("editor.clone")}
            title={t("editor.clone")}
          >
            <Copy className="size-4" /> {saved.builtIn ? t("editor.clone") : null}
          </Button>
          {saved.builtIn ? null : (
            <>
              <Button
                kind="quiet"
                onClick={() => window.confirm(t("workflows.deleteSure", { id })) && remove.mutate()}
                aria-label={t("workflows.delete")}
                title={t("workflows.delete")}
              >
                <Trash2 className="size-4" />
              </Button>
              <Button onClick={() => save.mutate(errors > 0)} disabled={!isChanged || save.isPending}>
                <Save className="size-4" /> {errors > 0 ? t("editor.saveDraft") : t("editor.save")}
              </Button>
            </>
          )}
          <Button
            kind="primary"
            onClick={() => setStarting(true)}
            disabled={isChanged}
            title={isChanged ? t("editor.saveFirst") : ""}
          >
            <Play className="size-4" /> {t("workflows.start")}
          </Button>
        </div>
      </div>
      {copy.isError || remove.isError ? (
        <div className="px-4 py-2">
          <Failed why={copy.error ?? remove.error} />
        </div>
      ) : null}
      {save.isError ? (
        <div className="px-4 py-2">
          <Failed why={save.error} />
          {save.error.code === "revision-moved" ? (
            <Button className="mt-2" onClick={() => window.location.reload()}>
              {t("editor.readAgain")}
            </Button>
          ) : null}
        </div>
      ) : null}
      <div className="flex min-h-0 flex-1 max-md:flex-col">
        <nav
          aria-label={t("editor.palette")}
          className="flex shrink-0 gap-1 overflow-auto border-line bg-surface p-2 max-md:border-b md:w-36 md:flex-col md:border-r"
        >
          {PALETTE.map((type) => {
            const Icon = iconOf(type);
            return (
              <button
                key={type}
                type="button"
                draggable
                onDragStart={(event) => event.dataTransfer.setData(DRAGGED, type)}
                onClick={() => put(type)}
                className="flex h-8 shrink-0 items-center gap-2 rounded-md px-2 text-left text-ink-soft hover:bg-sunken hover:text-ink"
              >
                <Icon className="size-4 shrink-0" aria-hidden /> {t(`node.${type}`)}
              </button>
            );
          })}
        </nav>
        <div className="min-h-64 min-w-0 flex-1">
          <EditorCanvas draft={draft} problems={checked.problems} picked={picked} onPick={setPicked} />
        </div>
        <aside className="w-full overflow-auto border-line bg-surface p-4 md:w-96 md:border-l">
          {node && schema.data ? (
            <NodeForm key={node.id} node={node} schema={schema.data} draft={draft} />
          ) : picked?.kind === "edge" ? (
            <EdgeForm key={picked.id} name={picked.id} definition={draft.shown} draft={draft} />
          ) : (
            <section>
              <p className="text-ink-soft">{t("editor.pick")}</p>
            </section>
          )}
          <section aria-live="polite" className="mt-6 border-t border-line pt-4">
            <h2 className="font-semibold">{t("workflows.problems")}</h2>
            {checked.error ? <Failed why={checked.error} /> : null}
            {!checked.error && checked.problems.length === 0 ? (
              <p className="mt-1 text-done">{t("workflows.noProblems")}</p>
            ) : null}
            <Problems problems={checked.problems} onPick={jump} />
          </section>
          <details className="mt-6">
            <summary className="cursor-pointer font-semibold">{t("workflows.text")}</summary>
            <pre className="mt-1 overflow-auto rounded-md bg-sunken p-3 font-mono text-xs">
              {checked.text ?? saved.text}
            </pre>
          </details>
        </aside>
      </div>
      {starting ? <StartDialog workflow={id} onClose={() => setStarting(false)} /> : null}
    </div>
  );
}

/** What the server says of the changes: asked when they rest for a moment. */
function useChecked(id: string, done: readonly Operation[][], before: Problem[]) {
  const [told, setTold] = useState<{ problems: Problem[]; text?: string; error?: ApiError }>({ problems: before });
  useEffect(() => {
    if (done.length === 0) {
      setTold({ problems: before });
      return;
    }
    const stop = new AbortController();
    const timer = setTimeout(async () => {
      try {
        const path = `/api/workflows/${encodeURIComponent(id)}/edit`;
        const edited = await ask<Edited>(path, { body: { operations: done.flat() }, signal: stop.signal });
        setTold({ problems: edited.problems, text: edited.text });
      } catch (why) {
        if (!stop.signal.aborted) setTold((now) => ({ ...now, error: why as ApiError }));
      }
    }, CHECKS_MS);
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [id, done, before]);
  return told;
}

/** Changes survive a reload: they are kept for the revision they were made on. */
function startedFrom(id: string, native: Definition, revision: number): DraftStore {
  const store = makeDraft(native);
  try {
    const kept = JSON.parse(localStorage.getItem(KEPT_AS + id) ?? "null") as {
      revision: number;
      done: Operation[][];
    } | null;
    if (kept?.revision === revision) store.getState().restart(native, kept.done);
  } catch {
    localStorage.removeItem(KEPT_AS + id);
  }
  return store;
}

function useKept(id: string, revision: number, store: DraftStore): void {
  useEffect(
    () =>
      store.subscribe(({ done }) => {
        if (done.length === 0) localStorage.removeItem(KEPT_AS + id);
        else localStorage.setItem(KEPT_AS + id, JSON.stringify({ revision, done }));
      }),
    [id, revision, store],
  );
}

function useKeys(store: DraftStore): void {
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement | null;
      if (target && (target.tagName === "INPUT" || target.tagName === "TEXTAREA")) return;
      if (!(event.ctrlKey || event.metaKey)) return;
      if (event.key === "z" && !event.shiftKey) store.getState().undo();
      else if (event.key === "y" || (event.key === "z" && event.shiftKey)) store.getState().redo();
      else return;
      event.preventDefault();
    };
    window.addEventListener("keydown", press);
    return () => window.removeEventListener("keydown", press);
  }, [store]);
}
