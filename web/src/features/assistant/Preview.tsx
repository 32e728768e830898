import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import type { Definition } from "@/api/views";
import { pictureOf } from "@/graph/model/picture";
import { Canvas } from "@/graph/render/Canvas";

/** A graph of a workflow that is not saved yet. A model wrote it, so any field may be missing. */
export default function Preview({ definition }: { definition: Definition }) {
  const { t, i18n } = useTranslation();
  const picture = useMemo(() => {
    const nodes = Array.isArray(definition.nodes) ? definition.nodes : [];
    const edges = Array.isArray(definition.edges) ? definition.edges : [];
    return pictureOf({ ...definition, nodes, edges }, i18n.language, t);
  }, [definition, i18n.language, t]);
  return <Canvas picture={picture} />;
}
