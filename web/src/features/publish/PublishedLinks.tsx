import { useEffect, useRef } from "react";
import { useTranslation } from "react-i18next";
import { Code, CopyLine } from "./Code";
import type { Publication } from "./publish";
import { widget } from "./snippets";

/** The links of a published workflow, and the code that puts its pages into another site. */
export function PublishedLinks(props: {
  known: Publication;
  title: string;
  /** How many saves there were: after each they get the focus, because they are far above the button. */
  saves: number;
}) {
  const links = useRef<HTMLElement>(null);
  const { saves } = props;
  useEffect(() => {
    if (saves > 0) links.current?.focus();
  }, [saves]);
  const { known, title } = props;
  const { t } = useTranslation();
  const server = window.location.origin;
  const pages = [
    { name: t("publish.link"), path: known.path },
    { name: t("publish.chatLink"), path: known.chatPath },
  ];
  const frames = [
    { name: t("publish.widget"), path: known.embedPath },
    { name: t("publish.chatWidget"), path: known.chatEmbedPath },
  ];
  return (
    <section
      ref={links}
      tabIndex={-1}
      aria-label={t("publish.links")}
      className="space-y-2 rounded-md border border-accent/60 bg-accent-soft p-3"
    >
      {pages.map(({ name, path }) =>
        path ? <CopyLine key={name} name={name} text={`${server}${path}`} href={`${server}${path}`} /> : null,
      )}
      {frames.map(({ name, path }) =>
        path ? <Code key={name} name={name} text={widget(server, path, title)} /> : null,
      )}
    </section>
  );
}
