import { useNavigate } from "@tanstack/react-router";
import { type ReactNode, useId } from "react";
import { useTranslation } from "react-i18next";
import { hasFilters } from "@/address";
import { Button } from "@/components/Button";
import { SearchBox } from "@/components/SearchBox";
import { StatusIcon } from "@/components/Status";
import { ToggleChip } from "@/components/ToggleChip";
import { useDebouncedInput } from "@/components/useDebouncedInput";
import { WorkflowPicker } from "@/components/WorkflowPicker";
import { type ExecutionSearch, STATUSES, withoutEmpty } from "./filters";

const BOX = "h-8 min-w-0 rounded-md border border-line-strong bg-surface px-2 text-ink max-sm:w-full";

/** The filters of the list. Each change is written to the address at once. */
export function ExecutionFilters({ search }: { search: ExecutionSearch }) {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const go = (next: Parameters<typeof withoutEmpty>[0]) =>
    void navigate({ to: "/executions", search: withoutEmpty(next), replace: true });
  const [words, type] = useDebouncedInput(search.q ?? "", (q) => go({ ...search, q }));
  const chosen = search.status ?? [];
  const press = (status: string) =>
    go({ ...search, status: chosen.includes(status) ? chosen.filter((one) => one !== status) : [...chosen, status] });
  return (
    <div className="mt-4 space-y-3">
      <div className="flex flex-wrap items-center gap-x-4 gap-y-2">
        {/* biome-ignore lint/a11y/useSemanticElements: a fieldset groups fields of a form; these buttons filter a list */}
        <div role="group" aria-label={t("executions.status")} className="flex flex-wrap gap-1.5">
          {STATUSES.map((one) => (
            <ToggleChip key={one} isOn={chosen.includes(one)} onPress={() => press(one)}>
              <StatusIcon status={one} className="size-3.5" /> {t(`status.${one}`)}
            </ToggleChip>
          ))}
        </div>
        <label className="flex min-h-6 cursor-pointer items-center gap-2 text-ink-soft">
          <input
            type="checkbox"
            className="size-4"
            checked={search.trials ?? false}
            onChange={(event) => go({ ...search, trials: event.target.checked || undefined })}
          />
          {t("executions.trials")}
        </label>
      </div>
      <div className="grid grid-cols-2 items-end gap-x-3 gap-y-2 sm:flex sm:flex-wrap">
        <div className="max-sm:col-span-2">
          <SearchBox value={words} onChange={type} label={t("executions.search")} />
        </div>
        <Labelled name={t("executions.workflow")}>
          {(id) => (
            <WorkflowPicker
              id={id}
              value={search.workflow ?? ""}
              onChange={(workflow) => go({ ...search, workflow })}
              placeholder={t("executions.any")}
              className={`${BOX} w-full sm:w-56`}
            />
          )}
        </Labelled>
        {(["since", "until"] as const).map((edge) => (
          <Labelled key={edge} name={t(`executions.${edge}`)}>
            {(id) => (
              <input
                id={id}
                type="date"
                value={search[edge] ?? ""}
                onChange={(event) => go({ ...search, [edge]: event.target.value })}
                className={BOX}
              />
            )}
          </Labelled>
        ))}
        <Labelled name={t("executions.order")}>
          {(id) => (
            <select
              id={id}
              value={search.q ? "desc" : (search.order ?? "desc")}
              disabled={Boolean(search.q)}
              onChange={(event) => go({ ...search, order: event.target.value === "asc" ? "asc" : undefined })}
              className={BOX}
            >
              <option value="desc">{t("executions.newest")}</option>
              <option value="asc">{t("executions.oldest")}</option>
            </select>
          )}
        </Labelled>
        {hasFilters(search) ? (
          <Button kind="quiet" onClick={() => go({})}>
            {t("executions.clear")}
          </Button>
        ) : null}
      </div>
      {search.q ? <p className="text-xs text-ink-faint">{t("executions.searchAbout")}</p> : null}
    </div>
  );
}

function Labelled(props: { name: string; children: (id: string) => ReactNode }) {
  const id = useId();
  return (
    <div className="min-w-0 max-sm:w-full">
      <label htmlFor={id} className="mb-0.5 block text-xs font-medium text-ink-soft">
        {props.name}
      </label>
      {props.children(id)}
    </div>
  );
}
