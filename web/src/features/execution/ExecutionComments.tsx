import { stepName, useNodeName } from "@/graph/model/nodeNames";
import { Comments } from "../comments/Comments";

/** The comments on an execution: on the selected node or step, or on all of it. */
export function ExecutionComments(props: {
  execution: string;
  place: { node: string; step: string | null } | null;
  onPlace: (place: string) => void;
}) {
  const nodeName = useNodeName();
  return (
    <div className="h-full overflow-auto p-3">
      <Comments
        key={props.place?.node}
        subject={{ kind: "execution", id: props.execution }}
        place={props.place ? (props.place.step ?? props.place.node) : null}
        nameOf={(place) => stepName(place, nodeName)}
        onPlace={props.onPlace}
      />
    </div>
  );
}

/** The node and the step of the place of a comment: the last part of a step names its node, as in `each[1.2]/write#3`. */
export function placeOf(place: string): [node: string, step: string] {
  const part = place.slice(place.lastIndexOf("/") + 1);
  return [part.replace(/(~.*)?(\[[\d.]+\])?(#\d+)?$/, ""), place];
}
