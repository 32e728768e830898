import { Plus, X } from "lucide-react";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "@/components/Button";
import { IconButton } from "@/components/IconButton";
import { BOX } from "@/components/LabelledField";
import type { FormErrors } from "@/components/useFormErrors";
import type { Mapping } from "./webhookDraft";

/** Whether another input has the name of this one. */
const isTwice = (inputs: readonly Mapping[], one: Mapping): boolean =>
  one.name.trim() !== "" && inputs.some((other) => other !== one && other.name.trim() === one.name.trim());

export const hasTwice = (inputs: readonly Mapping[]): boolean => inputs.some((one) => isTwice(inputs, one));

/** The input of the executions that a call starts: an expression over the call for each name. */
export function InputFields(props: {
  inputs: readonly Mapping[];
  change: (inputs: readonly Mapping[]) => void;
  errors: FormErrors;
}) {
  const { t } = useTranslation();
  const { inputs, change } = props;
  const put = (at: number, part: Partial<Mapping>) =>
    change(inputs.map((one, index) => (index === at ? { ...one, ...part } : one)));
  return (
    <fieldset>
      <legend className="mb-0.5 font-medium">{t("webhooks.inputs")}</legend>
      <ul className="space-y-2">
        {inputs.map((one, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: names change while they are typed, and rows are only appended
          <li key={at}>
            <Row
              input={one}
              number={at + 1}
              error={isTwice(inputs, one) ? t("webhooks.inputTwice") : props.errors.at(`inputs/${one.name.trim()}`)}
              put={(part) => put(at, part)}
              remove={() => change(inputs.filter((_, index) => index !== at))}
            />
          </li>
        ))}
      </ul>
      <p className="mt-0.5 text-xs text-ink-faint">{t("webhooks.inputsAbout")}</p>
      <Button className="mt-1" onClick={() => change([...inputs, { name: "", expression: "" }])}>
        <Plus className="size-4" aria-hidden /> {t("webhooks.addInput")}
      </Button>
    </fieldset>
  );
}

function Row(props: {
  input: Mapping;
  number: number;
  error: ReactNode;
  put: (part: Partial<Mapping>) => void;
  remove: () => void;
}) {
  const { t } = useTranslation();
  const { input, number, error } = props;
  return (
    <>
      <div className="flex items-center gap-2">
        <input
          className={`${BOX} max-w-44`}
          aria-label={t("webhooks.inputName", { number })}
          placeholder="order"
          autoComplete="off"
          spellCheck={false}
          required
          value={input.name}
          onChange={(event) => props.put({ name: event.target.value })}
        />
        <span aria-hidden className="text-ink-faint">
          =
        </span>
        <input
          className={`${BOX} font-mono`}
          aria-label={t("webhooks.inputExpression", { number })}
          aria-invalid={Boolean(error)}
          placeholder="event.order.id"
          autoComplete="off"
          spellCheck={false}
          required
          value={input.expression}
          onChange={(event) => props.put({ expression: event.target.value })}
        />
        <IconButton icon={X} name={t("webhooks.removeInput", { number })} onClick={props.remove} />
      </div>
      {error ? (
        <div role="alert" className="mt-0.5 text-sm text-failed">
          {error}
        </div>
      ) : null}
    </>
  );
}
