import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";
import { Page } from "@/components/Page";
import { QueryResult } from "@/components/QueryResult";
import { SearchBox } from "@/components/SearchBox";
import { EmptyMessage } from "@/components/StatusMessage";
import { ToggleChip } from "@/components/ToggleChip";
import { useDebouncedInput } from "@/components/useDebouncedInput";
import { textIn } from "@/i18n";
import { TagList } from "./TagList";
import { TemplatePicture } from "./TemplatePicture";
import { fitting, type Template, type TemplateSearch, tagsOf, templates } from "./templates";

/** The gallery: shipped workflows with their graphs, searched and filtered by tag. */
export function TemplatesPage() {
  const { t } = useTranslation();
  const all = useQuery(templates());
  return (
    <Page title={t("templates.title")} about={t("templates.about")}>
      <QueryResult query={all}>{(found) => <Gallery all={found} />}</QueryResult>
    </Page>
  );
}

function Gallery({ all }: { all: readonly Template[] }) {
  const { t, i18n } = useTranslation();
  const search = useSearch({ from: "/templates" });
  const navigate = useNavigate();
  const go = (next: TemplateSearch) => {
    const kept = { ...(next.q ? { q: next.q } : {}), ...(next.tag ? { tag: next.tag } : {}) };
    void navigate({ to: "/templates", search: kept, replace: true });
  };
  const [words, type] = useDebouncedInput(search.q ?? "", (q) => go({ ...search, q }));
  const found = fitting(all, search, i18n.language);
  return (
    <>
      <SearchBox value={words} onChange={type} label={t("templates.search")} />
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset groups fields of a form; these buttons filter a list */}
      <div role="group" aria-label={t("templates.tags")} className="mt-3 flex flex-wrap gap-1.5">
        {tagsOf(all).map((tag) => (
          <ToggleChip
            key={tag}
            isOn={search.tag === tag}
            onPress={() => go({ ...search, tag: search.tag === tag ? "" : tag })}
          >
            {t(`templates.tag.${tag}`, tag)}
          </ToggleChip>
        ))}
      </div>
      <p role="status" className="my-3 text-ink-soft">
        {t("templates.count", { count: found.length })}
      </p>
      {found.length === 0 ? (
        <EmptyMessage title={t("templates.none")}>{t("templates.noneHint")}</EmptyMessage>
      ) : (
        <ul className="grid gap-4 sm:grid-cols-2 lg:grid-cols-3">
          {found.map((one) => (
            <TemplateCard key={one.id} template={one} />
          ))}
        </ul>
      )}
    </>
  );
}

function TemplateCard({ template: one }: { template: Template }) {
  const { i18n } = useTranslation();
  return (
    <li className="relative flex flex-col overflow-hidden rounded-lg border border-line bg-surface focus-within:border-accent hover:border-accent">
      <TemplatePicture template={one} className="h-36 border-b border-line p-2" />
      <div className="flex flex-1 flex-col gap-1.5 p-3">
        <h2 className="font-semibold">
          <Link to="/templates/$id" params={{ id: one.id }} className="after:absolute after:inset-0">
            {textIn(one.name, i18n.language, one.id)}
          </Link>
        </h2>
        <p className="line-clamp-4 text-ink-soft">{textIn(one.description, i18n.language)}</p>
        <TagList tags={one.tags} />
      </div>
    </li>
  );
}
