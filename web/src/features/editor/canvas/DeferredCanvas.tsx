/** The canvas in an editor context of its own: what the user types into a field beside it is drawn after the field. */
import { startTransition, useEffect, useMemo, useState } from "react";
import { TrialOverlay } from "@/features/trying/TrialOverlay";
import type { Draft, DraftStore } from "../document/draft";
import type { Checked } from "../document/useChecked";
import { useProblemsByName } from "../document/useProblemsByName";
import { EditorContext, type EditorState } from "../editorContext";
import { EditorCanvas } from "./EditorCanvas";

/** `found` are the problems as the server returns them. */
export function DeferredCanvas({ work, found }: { work: EditorState; found: Checked }) {
  const { id, saved, store, mayChange, isChanged, schema, selection, select, picked, pick, panel, show, jump, canvas } =
    work;
  const draft = useDrawnDraft(store);
  const checked = useProblemsByName(found, draft.shown);
  const node = picked?.kind === "node" ? draft.shown.nodes.find((one) => one.id === picked.id) : undefined;
  const about = useMemo(
    () => ({
      id,
      saved,
      store,
      mayChange,
      isChanged,
      schema,
      selection,
      select,
      picked,
      pick,
      panel,
      show,
      jump,
      canvas,
    }),
    [id, saved, store, mayChange, isChanged, schema, selection, select, picked, pick, panel, show, jump, canvas],
  );
  const context = useMemo(() => ({ ...about, draft, checked, node }), [about, draft, checked, node]);
  // The same element is not rendered again.
  return useMemo(
    () => (
      <EditorContext value={context}>
        <TrialOverlay id={id} store={store}>
          <EditorCanvas />
        </TrialOverlay>
      </EditorContext>
    ),
    [context, id, store],
  );
}

/** The draft as the canvas draws it. A change that is typed elsewhere does not delay the field. */
function useDrawnDraft(store: DraftStore): Draft {
  const [drawn, draw] = useState(() => ({ store, draft: store.getState() }));
  useEffect(() => {
    const follow = (draft: Draft) => draw({ store, draft });
    follow(store.getState());
    return store.subscribe((draft) => (draft.isTyping ? startTransition(() => follow(draft)) : follow(draft)));
  }, [store]);
  return drawn.store === store ? drawn.draft : store.getState();
}
