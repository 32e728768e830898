import { useId } from "react";

/** One of a few choices: as buttons, or as a select on a phone. */
export function Choice<T extends string>(props: {
  name: string;
  value: T;
  choices: readonly (readonly [T, string])[];
  onChoose: (one: T) => void;
}) {
  const id = useId();
  return (
    <fieldset>
      <legend className="mb-0.5 text-xs font-medium text-ink-soft">{props.name}</legend>
      <div className="flex flex-wrap rounded-md border border-line-strong bg-surface p-0.5">
        {props.choices.map(([one, says]) => (
          <label
            key={one}
            className="cursor-pointer rounded px-2.5 py-1 leading-5 text-ink-soft hover:text-ink has-checked:bg-accent-soft has-checked:text-accent has-focus-visible:outline-2 has-focus-visible:outline-accent"
          >
            <input
              type="radio"
              name={id}
              value={one}
              checked={props.value === one}
              onChange={() => props.onChoose(one)}
              className="sr-only"
            />
            {says}
          </label>
        ))}
      </div>
    </fieldset>
  );
}
