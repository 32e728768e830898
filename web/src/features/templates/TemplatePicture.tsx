import { useEffect, useMemo, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { pictureOf } from "@/graph/model/picture";
import { type Ink, renderSvg } from "@/graph/render/svg";
import { textIn } from "@/i18n";
import { definitionOf, type Template } from "./templates";

/** The SVG is part of the page, so that its colours follow the theme. */
const INK: Ink = {
  surface: "var(--raised)",
  sunken: "var(--sunken)",
  strong: "var(--line-strong)",
  ink: "var(--ink)",
  faint: "var(--ink-faint)",
  soft: "var(--accent-soft)",
  failed: "var(--failed)",
};

/** The graph of a template, drawn when it comes near the visible part of the page. */
export function TemplatePicture({ template, className }: { template: Template; className: string }) {
  const { t, i18n } = useTranslation();
  const frame = useRef<HTMLDivElement>(null);
  const isNear = useNear(frame);
  const name = textIn(template.name, i18n.language, template.id);
  const drawing = useMemo(() => {
    if (!isNear) return "";
    const picture = pictureOf(definitionOf(template), i18n.language, t);
    const { text } = renderSvg(picture, INK, name, (type) => t(`node.${type}`, type), { inRows: true });
    return text.replace("<svg ", '<svg aria-hidden="true" class="size-full" ');
  }, [isNear, template, name, i18n.language, t]);
  return (
    <div
      ref={frame}
      role="img"
      aria-label={t("templates.picture", { name })}
      className={`overflow-hidden bg-sunken ${className}`}
      // biome-ignore lint/security/noDangerouslySetInnerHtml: `renderSvg` escapes all texts
      dangerouslySetInnerHTML={{ __html: drawing }}
    />
  );
}

function useNear(frame: { current: Element | null }): boolean {
  const [isNear, setNear] = useState(false);
  useEffect(() => {
    const element = frame.current;
    if (!element) return;
    const observer = new IntersectionObserver(([entry]) => entry?.isIntersecting && setNear(true), {
      rootMargin: "300px",
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, [frame]);
  return isNear;
}
