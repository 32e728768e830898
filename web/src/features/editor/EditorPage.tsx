import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { useStore } from "zustand";
import { type ApiError, apiResponse, type Problem } from "@/api/http";
import { definition, languageSchema, me, removeWorkflow, workflow } from "@/api/queries";
import type { Definition, WorkflowDetail } from "@/api/views";
import { Confirm } from "@/components/Confirm";
import { PageFailed } from "@/components/PageFailed";
import { ErrorMessage, Loading } from "@/components/StatusMessage";
import { useHasRole } from "@/components/useHasRole";
import { textIn } from "@/i18n";
import { uniqueId } from "@/uniqueId";
import { StartDialog } from "../workflows/StartDialog";
import { ChangeAnnouncer } from "./ChangeAnnouncer";
import { CloneDialog } from "./CloneDialog";
import { CanvasHandle } from "./canvas/canvasHandle";
import { DeferredCanvas } from "./canvas/DeferredCanvas";
import { useKeys } from "./canvas/keys";
import { Palette } from "./canvas/Palette";
import { EMPTY_SELECTION, type Picked, pickedOf, selectionOf } from "./canvas/selection";
import { type DraftStore, makeReadOnlyDraft } from "./document/draft";
import { editRequest, type Operation } from "./document/operations";
import { focusAt, pickedAt } from "./document/pointers";
import { openDraft, removeDraft, useStoredDraft } from "./document/storedDrafts";
import { type EditResponse, useChecked } from "./document/useChecked";
import { useProblemsByName } from "./document/useProblemsByName";
import { EditorContext, type EditorState, useEditor } from "./editorContext";
import { LinkedNode } from "./LinkedNode";
import { SidePanel } from "./panels/SidePanel";
import { RevisionConflict } from "./RevisionConflict";
import { Toolbar } from "./Toolbar";
import { UnsavedGuard } from "./UnsavedGuard";
import { useNewerRevision } from "./useNewerRevision";

/** Panels that stay open when the selection changes, because they follow the selection. */
const KEEPS_PANEL: ReadonlySet<string> = new Set(["try", "comments"]);

export function EditorPage() {
  const { t } = useTranslation();
  const { id } = useParams({ from: "/workflows/$id" });
  const saved = useQuery({ ...workflow(id), refetchOnWindowFocus: false });
  const native = useQuery({ ...definition(id), refetchOnWindowFocus: false });
  // Users without edit rights get no draft and must not load a stored one, so wait for the caller's rights.
  const caller = useQuery(me());
  const why = saved.error ?? native.error ?? caller.error;
  const again = () => void Promise.all([saved.refetch(), native.refetch(), caller.refetch()]);
  if (why)
    return <PageFailed error={why} name={id} back={{ to: "/workflows", name: t("shell.workflows") }} onRetry={again} />;
  if (!saved.data || !native.data || !caller.data) return <Loading />;
  return <Editor key={id} saved={saved.data.value} etag={saved.data.etag} native={native.data} />;
}

function Editor(props: { saved: WorkflowDetail; etag: string | null; native: Definition }) {
  const { saved, native } = props;
  const id = saved.id;
  const { t } = useTranslation();
  const client = useQueryClient();
  const navigate = useNavigate();
  const mayChange = useHasRole("editor");
  const store = useMemo(
    () => (mayChange ? openDraft(id, native, saved.revision) : makeReadOnlyDraft(native)),
    [id, native, saved.revision, mayChange],
  );
  const draft = useStore(store);
  const hasNewerRevision = useNewerRevision(id, saved.revision) !== undefined;
  const schema = useQuery(languageSchema());
  const [selection, select] = useState(EMPTY_SELECTION);
  const picked = useMemo(() => pickedOf(selection), [selection]);
  const canvas = useMemo(() => new CanvasHandle(), []);
  const [panel, show] = useState<string>(useSearch({ from: "/workflows/$id" }).panel ?? "properties");
  const [asked, ask] = useState<OpenDialog>(null);
  const isChanged = draft.done.length > 0;
  const isKept = useStoredDraft(id, saved.revision, store);

  const save = useSave(props, store, () => ask("start"));
  const found = useChecked(id, draft, saved.problems, save.isPending);
  const checked = useProblemsByName(found, draft.shown);
  const hasErrors = checked.problems.some((one) => one.severity === "error");
  const saveNow = () => {
    if (mayChange && isChanged && !save.isPending && !saved.builtIn) save.mutate({ draftOnly: hasErrors });
  };
  const start = () => {
    if (!isChanged) ask("start");
    else if (mayChange && !hasErrors && !save.isPending && !saved.builtIn)
      save.mutate({ draftOnly: false, andStart: true });
  };
  const mayRun = useHasRole("operator");
  const startNow = () => {
    if (!mayRun || asked !== null) return;
    // The problems panel shows why the workflow cannot start.
    if (isChanged && hasErrors) show("problems");
    else start();
  };
  useKeys(store, { save: saveNow, start: startNow });
  const remove = async () => {
    await removeWorkflow(id, props.etag);
    store.getState().restart(native);
    await client.invalidateQueries({ queryKey: ["workflows"] });
    await navigate({ to: "/workflows" });
  };

  const pick = useCallback((next: Picked | null) => {
    select(selectionOf(next));
    if (next) show((now) => (KEEPS_PANEL.has(now) ? now : "properties"));
  }, []);
  const jump = useCallback(
    (problem: Problem) => {
      select(selectionOf(pickedAt(problem.pointer, store.getState().shown)));
      show("properties");
      focusAt(problem.pointer);
    },
    [store],
  );
  const node = picked?.kind === "node" ? draft.shown.nodes.find((one) => one.id === picked.id) : undefined;
  const work: EditorState = {
    id,
    saved,
    store,
    draft,
    mayChange,
    isChanged,
    checked,
    schema: schema.data,
    selection,
    select,
    picked,
    node,
    pick,
    panel,
    show,
    jump,
    canvas,
  };

  return (
    <EditorContext value={work}>
      <div className="flex h-full flex-col">
        <Toolbar
          isKept={isKept}
          isSaving={save.isPending}
          onSave={saveNow}
          onStart={start}
          onClone={() => ask("clone")}
          onRemove={() => ask("delete")}
        />
        {save.isError && !(save.error.code === "revision-moved" && hasNewerRevision) ? (
          <div className="px-4 py-2">
            <ErrorMessage error={save.error} />
          </div>
        ) : null}
        {mayChange ? null : (
          <p role="status" className="border-b border-line bg-sunken px-4 py-2 text-ink-soft">
            {t("editor.lookOnly")}
          </p>
        )}
        <RevisionConflict onClone={() => ask("clone")} />
        <LinkedNode />
        <div className="flex min-h-0 flex-1 max-md:flex-col">
          {mayChange ? <Palette /> : null}
          <div className="min-h-64 min-w-0 flex-1 max-md:flex-none">
            <DeferredCanvas work={work} found={found} />
          </div>
          <SidePanel />
        </div>
        <EditorDialogs asked={asked} onRemove={remove} onClose={() => ask(null)} />
        <ChangeAnnouncer />
        <UnsavedGuard isChanged={isChanged} isKept={isKept} />
      </div>
    </EditorContext>
  );
}

type OpenDialog = "start" | "clone" | "delete" | null;

function EditorDialogs({
  asked,
  onRemove,
  onClose,
}: {
  asked: OpenDialog;
  onRemove: () => Promise<void>;
  onClose: () => void;
}) {
  const { t, i18n } = useTranslation();
  const { id, draft } = useEditor();
  if (asked === "start") return <StartDialog workflow={id} prefersDraft onClose={onClose} />;
  if (asked === "clone") return <CloneDialog id={id} onClose={onClose} />;
  if (asked === null) return null;
  return (
    <Confirm
      title={t("editor.deleteSure", { name: textIn(draft.shown.name, i18n.language, id) })}
      about={t("editor.deleteAbout")}
      confirmLabel={t("workflows.delete")}
      action={onRemove}
      onClose={onClose}
    />
  );
}

/** Save the changes as a draft revision or a checked revision, then load the new revision. */
function useSave(
  { saved, etag }: { saved: WorkflowDetail; etag: string | null },
  store: DraftStore,
  onStart: () => void,
) {
  const { id } = saved;
  const client = useQueryClient();
  // A save whose response was lost is retried with the same idempotency key, so that it is not saved twice.
  const idempotency = useRef<{ done: Operation[][]; key: string } | null>(null);
  const save = useMutation<EditResponse, ApiError, { draftOnly: boolean; andStart?: true }>({
    mutationFn: async ({ draftOnly }) => {
      const { done } = store.getState();
      const body = { ...editRequest(done), apply: true, draft: draftOnly };
      if (idempotency.current?.done !== done) idempotency.current = { done, key: uniqueId() };
      const headers = {
        "idempotency-key": `${idempotency.current.key}${draftOnly ? "-draft" : ""}`,
        ...(etag ? { "if-match": etag } : {}),
      };
      return (await apiResponse<EditResponse>(`/api/workflows/${encodeURIComponent(id)}/edit`, { body, headers }))
        .value;
    },
    onError: (why) => {
      if (why.code === "revision-moved") void client.invalidateQueries({ queryKey: ["revisions", id] });
    },
    onSuccess: async (_, { andStart }) => {
      removeDraft(id);
      const next = await client.fetchQuery({ ...definition(id), staleTime: 0 });
      store.getState().restart(next);
      await client.fetchQuery({ ...workflow(id), staleTime: 0 });
      await client.invalidateQueries({ queryKey: ["revisions", id] });
      await client.invalidateQueries({ queryKey: ["workflows"] });
      if (andStart) onStart();
    },
  });
  // An error concerns the revision that was edited.
  // biome-ignore lint/correctness/useExhaustiveDependencies: once for each revision
  useEffect(() => save.reset(), [saved.revision]);
  return save;
}
