/** Select the node and the field that the URL names; show a message if the node does not exist. */
import { useLocation } from "@tanstack/react-router";
import { useEffect, useMemo } from "react";
import { useTranslation } from "react-i18next";
import { nodeLinkIn } from "./document/nodeLinks";
import { focusAt } from "./document/pointers";
import { useEditor } from "./editorContext";

export function LinkedNode() {
  const { t } = useTranslation();
  const hash = useLocation({ select: (location) => location.hash });
  const linked = useMemo(() => nodeLinkIn(hash), [hash]);
  const { draft, pick, canvas, schema } = useEditor();
  const at = draft.shown.nodes.findIndex((one) => one.id === linked?.node);
  const isReady = schema !== undefined;
  // Once for each URL; afterwards the user selects freely.
  // biome-ignore lint/correctness/useExhaustiveDependencies: only when the URL changes, and once the form can be shown
  useEffect(() => {
    if (!linked || at < 0 || !isReady) return;
    pick({ kind: "node", id: linked.node });
    canvas.showNode(linked.node);
    if (linked.field) focusAt(`/nodes/${at}${linked.field}`);
  }, [linked, isReady]);
  if (!linked || at >= 0) return null;
  return (
    <p role="status" className="border-b border-line bg-waiting-soft px-4 py-2 text-waiting">
      {t("editor.notHere", { node: linked.node })}
    </p>
  );
}
