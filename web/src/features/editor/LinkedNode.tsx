/** Goes to the node that the address names, and to the field of it; says so where it is not there. */
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
  const { draft, pick, stage, schema } = useEditor();
  const at = draft.shown.nodes.findIndex((one) => one.id === linked?.node);
  const isReady = schema !== undefined;
  // Once for each address: afterwards people go where they like.
  // biome-ignore lint/correctness/useExhaustiveDependencies: only of the address, and once its form can be shown
  useEffect(() => {
    if (!linked || at < 0 || !isReady) return;
    pick({ kind: "node", id: linked.node });
    stage.bring(linked.node);
    if (linked.field) focusAt(`/nodes/${at}${linked.field}`);
  }, [linked, isReady]);
  if (!linked || at >= 0) return null;
  return (
    <p role="status" className="border-b border-line bg-waiting-soft px-4 py-2 text-waiting">
      {t("editor.notHere", { node: linked.node })}
    </p>
  );
}
