import { useInfiniteQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { FileUp, LayoutTemplate, Plus, Sparkles } from "lucide-react";
import { lazy, Suspense, useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import type { CatalogueEntry } from "@/api/views";
import { Button } from "@/components/Button";
import { LoadMore } from "@/components/Listing";
import { SearchBox } from "@/components/SearchBox";
import { EmptyMessage, ErrorMessage, Loading } from "@/components/StatusMessage";
import { ToggleChip } from "@/components/ToggleChip";
import { useDebouncedInput } from "@/components/useDebouncedInput";
import { useHasRole } from "@/components/useHasRole";
import { useTitle } from "@/components/useTitle";
import { FirstSteps } from "../templates/FirstSteps";
import { type CatalogueSearch, catalogue, type Sort } from "./catalogue";
import { DropTarget } from "./DropTarget";
import { FolderBar } from "./FolderBar";
import { NewDialog } from "./NewDialog";
import { SavedWorkflows } from "./SavedWorkflows";
import { WorkflowRow } from "./WorkflowRow";

const DescribeDialog = lazy(() =>
  import("../assistant/DescribeDialog").then((part) => ({ default: part.DescribeDialog })),
);
const ImportDialog = lazy(() => import("./ImportDialog").then((part) => ({ default: part.ImportDialog })));
const StartDialog = lazy(() => import("./StartDialog").then((part) => ({ default: part.StartDialog })));

type Open = { dialog: "new" | "describe" } | { dialog: "import"; files: File[] } | { dialog: "start"; id: string };

export function WorkflowsPage() {
  const { t } = useTranslation();
  useTitle(t("workflows.title"));
  const search = useSearch({ from: "/workflows" });
  const saved = useInfiniteQuery(catalogue(search, false));
  const builtIn = useInfiniteQuery(catalogue(search, true));
  const mayDesign = useHasRole("editor");
  const [open, setOpen] = useState<Open | null>(null);
  const close = () => setOpen(null);
  const ours = saved.data?.pages.flatMap((page) => page.workflows) ?? [];
  const shipped = builtIn.data?.pages.flatMap((page) => page.workflows) ?? [];
  const start = (id: string) => setOpen({ dialog: "start", id });
  const isNarrowed = Boolean(search.q || search.tag || search.folder);

  return (
    <div className="mx-auto max-w-5xl p-4 sm:p-6">
      <div className="flex flex-wrap items-center gap-3">
        <h1 className="mr-auto text-xl font-semibold">{t("workflows.title")}</h1>
        {mayDesign ? (
          <>
            <TemplatesLink />
            <Button onClick={() => setOpen({ dialog: "describe" })}>
              <Sparkles className="size-4" aria-hidden /> {t("describe.open")}
            </Button>
            <Button onClick={() => setOpen({ dialog: "import", files: [] })}>
              <FileUp className="size-4" aria-hidden /> {t("workflows.import")}
            </Button>
            <Button kind="primary" onClick={() => setOpen({ dialog: "new" })}>
              <Plus className="size-4" aria-hidden /> {t("new.open")}
            </Button>
          </>
        ) : null}
      </div>
      {mayDesign && saved.isSuccess ? <FirstSteps isNew={ours.length === 0 && !isNarrowed} /> : null}
      <CatalogueFilters search={search} shown={[...ours, ...shipped]} />
      <FolderBar search={search} />

      <div className="mt-3">
        {saved.isPending ? <Loading /> : null}
        {saved.isError ? <ErrorMessage error={saved.error} onRetry={() => void saved.refetch()} /> : null}
        {saved.isSuccess && ours.length === 0 && !isNarrowed ? (
          <EmptyMessage isNew title={t("workflows.none")}>
            <p>{t(mayDesign ? "workflows.noneHint" : "workflows.noneYours")}</p>
            {mayDesign ? (
              <div className="mt-4 flex justify-center">
                <TemplatesLink />
              </div>
            ) : null}
          </EmptyMessage>
        ) : null}
        {saved.isSuccess && builtIn.isSuccess && ours.length + shipped.length === 0 && isNarrowed ? (
          <EmptyMessage
            title={
              search.q || search.tag
                ? t("workflows.noMatch", { words: [search.q, ...(search.tag ?? [])].filter(Boolean).join(" ") })
                : t("folders.empty")
            }
          >
            {t(search.q || search.tag ? "workflows.noMatchHint" : "folders.emptyHint")}
          </EmptyMessage>
        ) : null}
        <SavedWorkflows entries={ours} onStart={start} />
        <LoadMore query={saved} />
        {shipped.length > 0 ? (
          <section className="mt-8">
            <h2 className="font-semibold">{t("workflows.builtIn")}</h2>
            <p className="mb-2 text-ink-soft">{t("workflows.builtInAbout")}</p>
            <ul className="divide-y divide-line overflow-hidden rounded-lg border border-line bg-surface">
              {shipped.map((one) => (
                <WorkflowRow key={one.id} entry={one} selection={null} onStart={() => start(one.id)} />
              ))}
            </ul>
            <LoadMore query={builtIn} />
          </section>
        ) : null}
      </div>
      {mayDesign && open === null ? <DropTarget onFiles={(files) => setOpen({ dialog: "import", files })} /> : null}
      <Suspense>
        {open?.dialog === "describe" ? <DescribeDialog onClose={close} /> : null}
        {open?.dialog === "import" ? <ImportDialog files={open.files} onClose={close} /> : null}
        {open?.dialog === "start" ? <StartDialog workflow={open.id} onClose={close} /> : null}
      </Suspense>
      {open?.dialog === "new" ? <NewDialog folder={search.folder} onClose={close} /> : null}
    </div>
  );
}

function TemplatesLink() {
  const { t } = useTranslation();
  return (
    <Link
      to="/templates"
      className="inline-flex h-8 items-center gap-1.5 rounded-md border border-line-strong bg-surface px-3 font-medium whitespace-nowrap hover:bg-sunken"
    >
      <LayoutTemplate className="size-4" aria-hidden /> {t("templates.open")}
    </Link>
  );
}

/** Search text, tags and order; stored in the address. */
function CatalogueFilters(props: { search: CatalogueSearch; shown: readonly CatalogueEntry[] }) {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const { search } = props;
  const go = (next: CatalogueSearch) => void navigate({ to: "/workflows", search: next, replace: true });
  const [words, type] = useDebouncedInput(search.q ?? "", (q) => go(without({ ...search, q })));
  const chosen = search.tag ?? [];
  const [known, setKnown] = useState<readonly string[]>([]);
  const seen = [...new Set([...known, ...chosen, ...props.shown.flatMap((one) => one.tags)])].sort();
  const all = seen.join("\n");
  // A tag stays visible while another one filters the list.
  useEffect(() => setKnown(all ? all.split("\n") : []), [all]);
  const press = (tag: string) =>
    go(without({ ...search, tag: chosen.includes(tag) ? chosen.filter((one) => one !== tag) : [...chosen, tag] }));
  return (
    <div className="mt-4 flex flex-wrap items-center gap-2">
      <SearchBox value={words} onChange={type} label={t("workflows.search")} />
      {seen.length > 0 ? (
        // biome-ignore lint/a11y/useSemanticElements: a fieldset groups fields of a form; these buttons filter a list
        <div role="group" aria-label={t("workflows.tags")} className="flex min-w-0 flex-wrap gap-1.5">
          {seen.map((tag) => (
            <ToggleChip key={tag} isOn={chosen.includes(tag)} onPress={() => press(tag)}>
              <bdi className="truncate">{tag}</bdi>
            </ToggleChip>
          ))}
        </div>
      ) : null}
      <label className="ml-auto flex items-center gap-2 text-ink-soft">
        {t("workflows.sort")}
        <select
          value={search.sort ?? "name"}
          onChange={(event) => go(without({ ...search, sort: event.target.value as Sort }))}
          className="h-8 rounded-md border border-line-strong bg-surface px-2 text-ink"
        >
          <option value="name">{t("workflows.sortName")}</option>
          <option value="saved">{t("workflows.sortSaved")}</option>
        </select>
      </label>
    </div>
  );
}

/** Leave defaults out of the address. */
function without(search: CatalogueSearch): CatalogueSearch {
  return {
    ...(search.q ? { q: search.q } : {}),
    ...(search.tag?.length ? { tag: search.tag } : {}),
    ...(search.sort === "saved" ? { sort: search.sort } : {}),
    ...(search.folder ? { folder: search.folder } : {}),
  };
}
