/** Add and connect nodes. If the source of a new edge chooses among answers, ask which one the edge follows. */
import type { DefinitionNode } from "@/api/views";
import { choosesAnswer, followedOutcomes, type Outcome, outcomesOf } from "@/graph/model/outcomes";
import type { NoteEditing } from "@/graph/render/noteEditing";
import { addNode, connectNodes } from "../document/edits";
import { applyOperation } from "../document/operations";
import { useEditor } from "../editorContext";
import type { Drawing, OpenDialog } from "./drawing";

const LOOSE: ReadonlySet<string> = new Set(["note", "frame", "start"]);

export function useDrawing(ask: (dialog: OpenDialog) => void, notes: NoteEditing | null): Drawing {
  const { draft, canvas, pick } = useEditor();
  const definition = draft.shown;
  const nodeOf = (id: string | undefined) => definition.nodes.find((node) => node.id === id);

  /** Call `use` with the given outcome, the only one, or the one that the user chooses. */
  const withOutcome = (
    source: DefinitionNode | undefined,
    drawn: typeof definition,
    wanted: string | null | undefined,
    use: (outcome?: Outcome) => void,
    focus?: () => void,
  ) => {
    if (!source) return use();
    const outcomes = outcomesOf(source, drawn);
    const given = outcomes.find((one) => one.id === wanted);
    if (given) return use(given);
    if (!choosesAnswer(source, drawn)) return use();
    const followed = followedOutcomes(source, drawn);
    ask({ kind: "outcome", source, outcomes, followed, choose: use, focus });
  };
  return {
    add: (adding, instead) => {
      const { id, changes } = addNode(definition, canvas.positions(), adding);
      const isLoose = LOOSE.has(adding.type);
      const added = changes.reduce(applyOperation, definition);
      // In the middle of an edge, the new node leads on; otherwise its predecessor leads to it.
      const isInserted = adding.on !== undefined;
      const source = isInserted ? added.nodes.find((node) => node.id === id) : nodeOf(adding.after);
      const put = (follows?: Outcome) => {
        draft.act(...addNode(definition, canvas.positions(), { ...adding, follows }).changes);
        if (instead) instead.onAdded(id);
        else pick({ kind: "node", id });
        canvas.reveal([id]);
        if (!instead && changes.some((one) => one.op === "add_node" && one.node.type === "note")) notes?.edit(id);
      };
      const drawn = isInserted ? added : definition;
      withOutcome(isLoose ? undefined : source, drawn, adding.outcome, put, instead?.focus);
    },
    connect: (source, target, outcome, focus) => {
      const put = (follows?: Outcome) => draft.act(connectNodes(definition, source, target, follows));
      withOutcome(nodeOf(source), definition, outcome, put, focus);
    },
  };
}
