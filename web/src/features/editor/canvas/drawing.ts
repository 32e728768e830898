/** What the parts of the canvas share: drawing nodes and edges, and the dialogs that it opens. */
import type { DefinitionNode } from "@/api/views";
import type { Outcome } from "@/graph/model/outcomes";
import type { NewNode } from "../document/edits";
import type { Picked } from "./selection";

export interface Drawing {
  /** By default the new node is selected and shown, and the canvas has the focus after a question. */
  add: (adding: NewNode, instead?: { onAdded: (id: string) => void; focus: () => void }) => void;
  /** `outcome`: id of the outcome that the edge follows, if the gesture began at its port. `focus`: as above. */
  connect: (source: string, target: string, outcome?: string | null, focus?: () => void) => void;
}

export type OpenDialog =
  | { kind: "add"; adding: Omit<NewNode, "type"> }
  | { kind: "find" }
  | { kind: "connect"; from: Picked }
  | AskedOutcome
  | { kind: "help" }
  | null;

/** Which outcome of the source does the new edge follow? `followed` leads from outcomes to nodes. */
export interface AskedOutcome {
  kind: "outcome";
  source: DefinitionNode;
  outcomes: readonly Outcome[];
  followed: ReadonlyMap<string, string>;
  choose: (outcome: Outcome) => void;
  /** Moves the focus after the choice, if not to the canvas. */
  focus?: (() => void) | undefined;
}
