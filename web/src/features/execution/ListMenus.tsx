/** Menus of the list of executions: the columns to show, and saved views. */
import { Bookmark, Columns3, X } from "lucide-react";
import { Popover } from "radix-ui";
import { type FormEvent, type ReactNode, useState } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "@/components/Button";
import { IconButton } from "@/components/IconButton";
import type { ExecutionSearch } from "./filters";
import { COLUMNS, type ColumnName } from "./listColumns";
import { useSavedViews } from "./savedViews";

function Menu(props: { name: string; icon: typeof Bookmark; children: ReactNode }) {
  return (
    <Popover.Root>
      <Popover.Trigger asChild>
        <Button>
          <props.icon className="size-4" aria-hidden /> {props.name}
        </Button>
      </Popover.Trigger>
      <Popover.Portal>
        <Popover.Content
          align="end"
          aria-label={props.name}
          className="z-40 min-w-52 rounded-md border border-line bg-raised p-2 shadow-lg"
        >
          {props.children}
        </Popover.Content>
      </Popover.Portal>
    </Popover.Root>
  );
}

export function ColumnMenu(props: { columns: readonly ColumnName[]; onToggle: (column: ColumnName) => void }) {
  const { t } = useTranslation();
  return (
    <Menu name={t("executions.columns")} icon={Columns3}>
      {COLUMNS.map((one) => (
        <label key={one} className="flex min-h-7 cursor-pointer items-center gap-2">
          <input
            type="checkbox"
            className="size-4"
            checked={props.columns.includes(one)}
            onChange={() => props.onToggle(one)}
          />
          {t(`executions.column.${one}`)}
        </label>
      ))}
    </Menu>
  );
}

export function ViewMenu(props: { search: ExecutionSearch; onOpen: (search: ExecutionSearch) => void }) {
  const { t } = useTranslation();
  const { views, save, remove } = useSavedViews();
  const [name, setName] = useState("");
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (!name.trim()) return;
    save(name.trim(), props.search);
    setName("");
  };
  return (
    <Menu name={t("executions.views")} icon={Bookmark}>
      {Object.entries(views).map(([one, search]) => (
        <div key={one} className="flex items-center gap-1">
          <Button kind="quiet" className="min-w-0 flex-1 justify-start" onClick={() => props.onOpen(search)}>
            <bdi className="truncate">{one}</bdi>
          </Button>
          <IconButton
            icon={X}
            size="small"
            name={t("executions.removeView", { name: one })}
            onClick={() => remove(one)}
          />
        </div>
      ))}
      {Object.keys(views).length === 0 ? (
        <p className="mb-1 text-sm text-ink-faint">{t("executions.noViews")}</p>
      ) : null}
      <form onSubmit={submit} className="mt-1 flex gap-1">
        <input
          aria-label={t("executions.viewName")}
          placeholder={t("executions.viewName")}
          value={name}
          onChange={(event) => setName(event.target.value)}
          className="h-8 min-w-0 flex-1 rounded-md border border-line-strong bg-surface px-2"
        />
        <Button type="submit">{t("executions.saveView")}</Button>
      </form>
    </Menu>
  );
}
