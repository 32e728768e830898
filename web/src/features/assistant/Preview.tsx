import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import type { Definition } from "@/api/views";
import { pictureOf } from "@/graph/model/picture";
import { Canvas } from "@/graph/render/Canvas";

/** A workflow to look at before it is saved. What a model wrote may lack anything. */
export default function Preview({ definition }: { definition: Definition }) {
  const { t, i18n } = useTranslation();
  const picture = useMemo(() => {
    const nodes = Array.isArray(definition.nodes) ? definition.nodes : [];
    const edges = Array.isArray(definition.edges) ? definition.edges : [];
    return pictureOf({ ...definition, nodes, edges }, i18n.language, t);
  }, [definition, i18n.language, t]);
  return <Canvas picture={picture} />;
}
