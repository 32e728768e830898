import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Plus, Trash2 } from "lucide-react";
import { useTranslation } from "react-i18next";
import type { Json } from "@/api/views";
import { Button } from "@/components/Button";
import { IconButton } from "@/components/IconButton";
import { LabelledField } from "@/components/LabelledField";
import { ErrorMessage } from "@/components/StatusMessage";
import { isObject } from "@/values/changes";
import { dataset, datasets } from "../evaluations/evaluations";
import { ROWS_MAX, type Row } from "./prompt";

const textOf = (value: Json | undefined) =>
  value === undefined ? "" : typeof value === "string" ? value : JSON.stringify(value);

/** The values of the variables: each row is one run of the prompt. */
export function Rows(props: { rows: readonly Row[]; variables: readonly string[]; onChange: (rows: Row[]) => void }) {
  const { t } = useTranslation();
  const { rows, variables, onChange } = props;
  if (variables.length === 0) return null;
  const set = (at: number, name: string, value: string) =>
    onChange(rows.map((row, nth) => (nth === at ? { ...row, [name]: value } : row)));
  return (
    <fieldset className="space-y-2">
      <legend className="mb-0.5 font-medium">{t("playground.inputs")}</legend>
      {rows.map((row, at) => (
        <fieldset
          // biome-ignore lint/suspicious/noArrayIndexKey: rows have no other identity
          key={at}
          aria-label={t("playground.input", { nth: at + 1 })}
          className="flex items-end gap-2"
        >
          <div className="grid min-w-0 flex-1 gap-2 sm:grid-cols-[repeat(auto-fit,minmax(9rem,1fr))]">
            {variables.map((name) => (
              <LabelledField key={name} name={name}>
                {(its) => (
                  <textarea
                    {...its}
                    rows={1}
                    value={textOf(row[name])}
                    onChange={(event) => set(at, name, event.target.value)}
                  />
                )}
              </LabelledField>
            ))}
          </div>
          <IconButton
            icon={Trash2}
            name={t("playground.inputRemove", { nth: at + 1 })}
            disabled={rows.length === 1}
            onClick={() => onChange(rows.filter((_, nth) => nth !== at))}
          />
        </fieldset>
      ))}
      <div className="flex flex-wrap items-center gap-2">
        <Button disabled={rows.length >= ROWS_MAX} onClick={() => onChange([...rows, {}])}>
          <Plus className="size-4" aria-hidden /> {t("playground.inputAdd")}
        </Button>
        <FromDataset onChange={onChange} />
      </div>
    </fieldset>
  );
}

/** Replace the rows by the first cases of a dataset. */
function FromDataset({ onChange }: { onChange: (rows: Row[]) => void }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const known = useQuery(datasets());
  const load = useMutation({
    mutationFn: (name: string) => client.fetchQuery(dataset(name)),
    onSuccess: ({ cases }) => {
      const rows = (cases as { input?: Json }[]).map((one) => (isObject(one.input) ? one.input : {}));
      if (rows.length > 0) onChange(rows.slice(0, ROWS_MAX));
    },
  });
  if (!known.data?.length) return null;
  return (
    <>
      <select
        className="h-8 max-w-full rounded-md border border-line-strong bg-surface px-2"
        aria-label={t("playground.dataset")}
        value=""
        onChange={(event) => load.mutate(event.target.value)}
      >
        <option value="">{t("playground.dataset")}</option>
        {known.data.map((one) => (
          <option key={one.id} value={one.id}>
            {one.name}
          </option>
        ))}
      </select>
      {load.data && load.data.count > ROWS_MAX ? (
        <p className="text-xs text-ink-faint">
          {t("playground.datasetCut", { shown: ROWS_MAX, count: load.data.count })}
        </p>
      ) : null}
      {load.isError ? <ErrorMessage error={load.error} /> : null}
    </>
  );
}
