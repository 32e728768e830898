import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { Folder as FolderIcon, FolderPlus, Pencil, Trash2, Users } from "lucide-react";
import { lazy, Suspense, useState } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "@/components/Button";
import { Confirm } from "@/components/Confirm";
import { IconButton } from "@/components/IconButton";
import { useHasRole } from "@/components/useHasRole";
import type { CatalogueSearch } from "./catalogue";
import { FolderDialog } from "./FolderDialog";
import { around, createFolder, deleteFolder, type Folder, folders, nameOf, parentOf, renameFolder } from "./folders";

const SharingDialog = lazy(() => import("./SharingDialog").then((part) => ({ default: part.FolderSharingDialog })));

type Open = "new" | "rename" | "share" | "delete" | null;

/** The open folder with its path, the folders in it, and what can be done with it. */
export function FolderBar({ search }: { search: CatalogueSearch }) {
  const { t } = useTranslation();
  const mayDesign = useHasRole("editor");
  const known = useQuery(folders());
  const [open, setOpen] = useState<Open>(null);
  const path = search.folder ?? "";
  const all = known.data ?? [];
  const inner = all.filter((one) => parentOf(one.path) === path);
  if (!mayDesign && all.length === 0) return null;
  return (
    <nav aria-label={t("folders.title")} className="mt-3 flex flex-wrap items-center gap-2">
      {path ? <FolderPath path={path} search={search} /> : null}
      {inner.map((one) => (
        <FolderLink key={one.path} path={one.path} count={countIn(one.path, all)} search={search} />
      ))}
      {mayDesign ? (
        <span className="flex items-center gap-1">
          <Button kind="quiet" onClick={() => setOpen("new")}>
            <FolderPlus className="size-4" aria-hidden /> {t("folders.new")}
          </Button>
          {path ? (
            <>
              <IconButton icon={Pencil} name={t("folders.rename", { path })} onClick={() => setOpen("rename")} />
              <IconButton icon={Users} name={t("sharing.of", { name: path })} onClick={() => setOpen("share")} />
              <IconButton icon={Trash2} name={t("folders.delete", { path })} onClick={() => setOpen("delete")} />
            </>
          ) : null}
        </span>
      ) : null}
      <FolderDialogs open={open} path={path} onClose={() => setOpen(null)} />
    </nav>
  );
}

function FolderDialogs({ open, path, onClose }: { open: Open; path: string; onClose: () => void }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const navigate = useNavigate();
  const goTo = async (folder: string) => {
    await client.invalidateQueries({ queryKey: ["workflows"] });
    await navigate({ to: "/workflows", search: folder ? { folder } : {} });
  };
  switch (open) {
    case null:
      return null;
    case "new":
      return (
        <FolderDialog
          title={t("folders.new")}
          start={path ? `${path}/` : ""}
          submitLabel={t("folders.create")}
          save={async (made) => {
            await createFolder(made);
            await goTo(made);
          }}
          onClose={onClose}
        />
      );
    case "rename":
      return (
        <FolderDialog
          title={t("folders.rename", { path })}
          start={path}
          submitLabel={t("folders.save")}
          save={async (to) => {
            await renameFolder(path, to);
            await goTo(to);
          }}
          onClose={onClose}
        />
      );
    case "share":
      return (
        <Suspense>
          <SharingDialog path={path} onClose={onClose} />
        </Suspense>
      );
    case "delete":
      return (
        <Confirm
          title={t("folders.deleteSure", { path })}
          about={t("folders.deleteAbout")}
          confirmLabel={t("workflows.delete")}
          action={() => deleteFolder(path)}
          onDone={() => goTo(parentOf(path))}
          onClose={onClose}
        />
      );
  }
}

function FolderPath({ path, search }: { path: string; search: CatalogueSearch }) {
  const { t } = useTranslation();
  const { folder: _, ...rest } = search;
  return (
    <ol className="flex flex-wrap items-center gap-1">
      <li>
        <Link to="/workflows" search={rest} className="inline-flex min-h-6 items-center underline">
          {t("folders.all")}
        </Link>
      </li>
      {around(path).map((one) => (
        <li key={one} className="flex items-center gap-1">
          <span aria-hidden className="text-ink-faint">
            /
          </span>
          {one === path ? (
            <span aria-current="page" className="font-medium">
              <bdi>{nameOf(one)}</bdi>
            </span>
          ) : (
            <Link
              to="/workflows"
              search={{ ...rest, folder: one }}
              className="inline-flex min-h-6 items-center underline"
            >
              <bdi>{nameOf(one)}</bdi>
            </Link>
          )}
        </li>
      ))}
    </ol>
  );
}

/** Workflows in a folder and in the folders in it. */
const countIn = (path: string, all: readonly Folder[]) =>
  all.filter((one) => around(one.path).includes(path)).reduce((sum, one) => sum + one.workflows, 0);

function FolderLink({ path, count, search }: { path: string; count: number; search: CatalogueSearch }) {
  const { t } = useTranslation();
  return (
    <Link
      to="/workflows"
      search={{ ...search, folder: path }}
      className="inline-flex h-8 max-w-60 items-center gap-1.5 rounded-md border border-line bg-surface px-2.5 hover:bg-sunken"
      title={path}
    >
      <FolderIcon className="size-4 shrink-0 text-ink-faint" aria-hidden />
      <bdi className="truncate">{nameOf(path)}</bdi>
      <span className="text-xs text-ink-faint">
        {count}
        <span className="sr-only"> {t("folders.workflows", { count })}</span>
      </span>
    </Link>
  );
}
