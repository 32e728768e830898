/** Templates of the form library: list entries, additional properties, alternatives and buttons. */
import {
  ADDITIONAL_PROPERTY_FLAG,
  type ArrayFieldItemTemplateProps,
  type IconButtonProps,
  type MultiSchemaFieldTemplateProps,
  type RJSFSchema,
  type TemplatesType,
  type UnsupportedFieldProps,
  type WrapIfAdditionalTemplateProps,
} from "@rjsf/utils";
import { ArrowDown, ArrowUp, type LucideIcon, Plus, X } from "lucide-react";
import { useEffect, useId } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "@/components/Button";
import { IconButton } from "@/components/IconButton";

type Form = unknown;

function Entry(props: ArrayFieldItemTemplateProps<Form, RJSFSchema>) {
  const { ArrayFieldItemButtonsTemplate: Buttons } = props.registry.templates;
  return (
    <div className="form-entry flex items-start gap-1">
      <div className="min-w-0 flex-1">{props.children}</div>
      {props.hasToolbar ? (
        <div className="flex shrink-0">
          <Buttons {...props.buttonsProps} />
        </div>
      ) : null}
    </div>
  );
}

/** Name that the library gives to a new additional property. */
const NEW = /^newKey(-\d+)?$/;

/** An additional property with an editable name; a new one gets a translated name, selected for overwriting. */
function NamedField(props: WrapIfAdditionalTemplateProps<Form, RJSFSchema>) {
  const { t } = useTranslation();
  const id = useId();
  const isWrong = !props.hideError && (props.rawErrors?.length ?? 0) > 0;
  const look = [props.classNames, isWrong ? "is-wrong" : ""].join(" ");
  const { label, onKeyRename } = props;
  const isNew = ADDITIONAL_PROPERTY_FLAG in props.schema && NEW.test(label);
  useEffect(() => {
    if (isNew) onKeyRename(t("form.newKey"));
  }, [isNew, onKeyRename, t]);
  if (!(ADDITIONAL_PROPERTY_FLAG in props.schema)) return <div className={look}>{props.children}</div>;
  const { RemoveButton } = props.registry.templates.ButtonTemplates;
  return (
    <div className={`form-entry flex items-start gap-1 ${look}`}>
      <div className="grid min-w-0 flex-1 gap-1 sm:grid-cols-[2fr_3fr]">
        <div>
          <label htmlFor={id} className="sr-only">
            {t("form.key")}
          </label>
          <input
            key={label}
            id={id}
            defaultValue={label}
            onFocus={(event) => event.target.select()}
            onBlur={props.onKeyRenameBlur}
          />
        </div>
        <div>{props.children}</div>
      </div>
      <RemoveButton
        id={`${props.id}-remove`}
        disabled={props.disabled === true || props.readonly === true}
        onClick={props.onRemoveProperty}
        registry={props.registry}
      />
    </div>
  );
}

/** Choice between alternatives of a schema, and the fields of the chosen one. */
function Alternatives(props: MultiSchemaFieldTemplateProps<Form, RJSFSchema>) {
  const { t } = useTranslation();
  return (
    <div className="space-y-2">
      {/* biome-ignore lint/a11y/noLabelWithoutControl: the library renders the select inside */}
      <label className="font-normal">
        <span className="sr-only">{t("form.way")}</span>
        {props.selector}
      </label>
      {props.optionSchemaField}
    </div>
  );
}

function Unsupported(props: UnsupportedFieldProps<Form, RJSFSchema>) {
  const { t } = useTranslation();
  return <p className="text-ink-soft">{t("form.unsupported", { name: props.schema.title ?? "" })}</p>;
}

function Add({ id, disabled, onClick }: IconButtonProps<Form, RJSFSchema>) {
  const { t } = useTranslation();
  return (
    <Button id={id} kind="quiet" className="h-7 px-2" disabled={disabled} onClick={onClick}>
      <Plus className="size-3.5" aria-hidden /> {t("form.add")}
    </Button>
  );
}

function iconButton(icon: LucideIcon, word: string) {
  return function TemplateButton({ id, disabled, onClick }: IconButtonProps<Form, RJSFSchema>) {
    const { t } = useTranslation();
    return <IconButton id={id} icon={icon} name={t(word)} disabled={disabled} onClick={onClick} />;
  };
}

export const templates: Partial<Omit<TemplatesType<Form, RJSFSchema>, "ButtonTemplates">> & {
  ButtonTemplates: Partial<TemplatesType<Form, RJSFSchema>["ButtonTemplates"]>;
} = {
  ArrayFieldItemTemplate: Entry,
  WrapIfAdditionalTemplate: NamedField,
  MultiSchemaFieldTemplate: Alternatives,
  UnsupportedFieldTemplate: Unsupported,
  ButtonTemplates: {
    AddButton: Add,
    RemoveButton: iconButton(X, "form.remove"),
    MoveUpButton: iconButton(ArrowUp, "form.up"),
    MoveDownButton: iconButton(ArrowDown, "form.down"),
  },
};
