import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate, useParams } from "@tanstack/react-router";
import { useEffect, useMemo, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { useStore } from "zustand";
import { type ApiError, answerOf, type Problem } from "@/api/http";
import { definition, languageSchema, me, removeWorkflow, workflow } from "@/api/queries";
import type { Definition, WorkflowDetail } from "@/api/views";
import { Confirm } from "@/components/Confirm";
import { useMay } from "@/components/may";
import { PageFailed } from "@/components/PageFailed";
import { Failed, Loading } from "@/components/Told";
import { textIn } from "@/i18n";
import { uniqueId } from "@/uniqueId";
import { TrialOnCanvas } from "../trying/TrialOnCanvas";
import { StartDialog } from "../workflows/StartDialog";
import { CloneDialog } from "./CloneDialog";
import { type Edited, useChecked } from "./checked";
import { Deeds } from "./Deeds";
import { makeLook } from "./draft";
import { EditorCanvas } from "./EditorCanvas";
import { forget, startedFrom, useKept } from "./kept";
import { useKeys } from "./keys";
import { Leaving } from "./Leaving";
import { LinkedNode } from "./LinkedNode";
import { Moved } from "./Moved";
import { askedOf, type Operation } from "./operations";
import { Palette } from "./Palette";
import { focusAt, pickedAt } from "./pointers";
import { SidePanel } from "./SidePanel";
import { NOTHING, type Picked, pickedOf, selectionOf } from "./selection";
import { Stage } from "./stage";
import { Toolbar } from "./Toolbar";
import { useMoved } from "./useMoved";
import { type Work, WorkShared } from "./work";

/** Parts that stay when something is picked: what they say is of what is picked. */
const KEEPS: ReadonlySet<string> = new Set(["try"]);

export function EditorPage() {
  const { t } = useTranslation();
  const { id } = useParams({ from: "/workflows/$id" });
  const saved = useQuery({ ...workflow(id), refetchOnWindowFocus: false });
  const native = useQuery({ ...definition(id), refetchOnWindowFocus: false });
  // Who may change nothing gets no draft, and what is kept here is not looked at: so that is known first.
  const caller = useQuery(me());
  const why = saved.error ?? native.error ?? caller.error;
  const again = () => void Promise.all([saved.refetch(), native.refetch(), caller.refetch()]);
  if (why)
    return <PageFailed error={why} name={id} back={{ to: "/workflows", name: t("shell.workflows") }} again={again} />;
  if (!saved.data || !native.data || !caller.data) return <Loading />;
  return <Editor key={id} saved={saved.data.value} etag={saved.data.etag} native={native.data} />;
}

function Editor(props: { saved: WorkflowDetail; etag: string | null; native: Definition }) {
  const { saved, native } = props;
  const id = saved.id;
  const { t, i18n } = useTranslation();
  const client = useQueryClient();
  const navigate = useNavigate();
  const mayChange = useMay("editor");
  const store = useMemo(
    () => (mayChange ? startedFrom(id, native, saved.revision) : makeLook(native)),
    [id, native, saved.revision, mayChange],
  );
  const draft = useStore(store);
  const hasMoved = useMoved(id, saved.revision) !== undefined;
  const schema = useQuery(languageSchema());
  const [selection, select] = useState(NOTHING);
  const picked = useMemo(() => pickedOf(selection), [selection]);
  const stage = useMemo(() => new Stage(), []);
  const [panel, show] = useState("properties");
  const [asked, ask] = useState<"start" | "clone" | "delete" | null>(null);
  const close = () => ask(null);
  const isChanged = draft.done.length > 0;
  const isKept = useKept(id, saved.revision, store);

  // An answer that was lost on its way is asked for again, and nothing is saved twice.
  const once = useRef<{ done: Operation[][]; key: string } | null>(null);
  const save = useMutation<Edited, ApiError, { draftOnly: boolean; andStart?: true }>({
    mutationFn: async ({ draftOnly }) => {
      const body = { ...askedOf(draft.done), apply: true, draft: draftOnly };
      if (once.current?.done !== draft.done) once.current = { done: draft.done, key: uniqueId() };
      const headers = {
        "idempotency-key": `${once.current.key}${draftOnly ? "-draft" : ""}`,
        ...(props.etag ? { "if-match": props.etag } : {}),
      };
      return (await answerOf<Edited>(`/api/workflows/${encodeURIComponent(id)}/edit`, { body, headers })).value;
    },
    onError: (why) => {
      if (why.code === "revision-moved") void client.invalidateQueries({ queryKey: ["revisions", id] });
    },
    onSuccess: async (_, { andStart }) => {
      forget(id);
      const next = await client.fetchQuery({ ...definition(id), staleTime: 0 });
      store.getState().restart(next);
      await client.fetchQuery({ ...workflow(id), staleTime: 0 });
      await client.invalidateQueries({ queryKey: ["revisions", id] });
      await client.invalidateQueries({ queryKey: ["workflows"] });
      if (andStart) ask("start");
    },
  });
  const checked = useChecked(id, draft.done, saved.problems, save.isPending);
  const hasErrors = checked.problems.some((one) => one.severity === "error");
  const saveNow = () => {
    if (mayChange && isChanged && !save.isPending && !saved.builtIn) save.mutate({ draftOnly: hasErrors });
  };
  const start = () => {
    if (!isChanged) ask("start");
    else if (mayChange && !hasErrors && !save.isPending && !saved.builtIn)
      save.mutate({ draftOnly: false, andStart: true });
  };
  const mayRun = useMay("operator");
  const startNow = () => {
    if (!mayRun || asked !== null) return;
    // What keeps it from starting stands there.
    if (isChanged && hasErrors) show("problems");
    else start();
  };
  useKeys(store, { save: saveNow, start: startNow });
  // What was refused is of the past once another revision is edited.
  // biome-ignore lint/correctness/useExhaustiveDependencies: for each revision
  useEffect(() => save.reset(), [saved.revision]);
  const remove = async () => {
    await removeWorkflow(id, props.etag);
    store.getState().restart(native);
    await client.invalidateQueries({ queryKey: ["workflows"] });
    await navigate({ to: "/workflows" });
  };

  const pick = (next: Picked | null) => {
    select(selectionOf(next));
    if (next) show((now) => (KEEPS.has(now) ? now : "properties"));
  };
  const jump = (problem: Problem) => {
    select(selectionOf(pickedAt(problem.pointer, draft.shown)));
    show("properties");
    focusAt(problem.pointer);
  };
  const node = picked?.kind === "node" ? draft.shown.nodes.find((one) => one.id === picked.id) : undefined;
  const work: Work = {
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
    stage,
  };

  return (
    <WorkShared value={work}>
      <div className="flex h-full flex-col">
        <Toolbar
          isKept={isKept}
          isSaving={save.isPending}
          onSave={saveNow}
          onStart={start}
          onClone={() => ask("clone")}
          onRemove={() => ask("delete")}
        />
        {save.isError && !(save.error.code === "revision-moved" && hasMoved) ? (
          <div className="px-4 py-2">
            <Failed why={save.error} />
          </div>
        ) : null}
        {mayChange ? null : (
          <p role="status" className="border-b border-line bg-sunken px-4 py-2 text-ink-soft">
            {t("editor.lookOnly")}
          </p>
        )}
        <Moved onClone={() => ask("clone")} />
        <LinkedNode />
        <div className="flex min-h-0 flex-1 max-md:flex-col">
          {mayChange ? <Palette /> : null}
          <div className="min-h-64 min-w-0 flex-1 max-md:flex-none">
            <TrialOnCanvas id={id} store={store}>
              <EditorCanvas />
            </TrialOnCanvas>
          </div>
          <SidePanel />
        </div>
        {asked === "start" ? <StartDialog workflow={id} onClose={close} /> : null}
        {asked === "clone" ? <CloneDialog id={id} onClose={close} /> : null}
        {asked === "delete" ? (
          <Confirm
            title={t("editor.deleteSure", { name: textIn(draft.shown.name, i18n.language, id) })}
            about={t("editor.deleteAbout")}
            deed={t("workflows.delete")}
            act={remove}
            onClose={close}
          />
        ) : null}
        <Deeds />
        <Leaving isChanged={isChanged} isKept={isKept} />
      </div>
    </WorkShared>
  );
}
