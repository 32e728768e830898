/** A small switch between a few views: one button for each, the chosen one is pressed. */
export function Segments<Id extends string>(props: {
  label: string;
  choices: readonly { id: Id; name: string }[];
  chosen: Id;
  onChoose: (id: Id) => void;
}) {
  if (props.choices.length < 2) return null;
  return (
    <fieldset aria-label={props.label} className="flex rounded-md border border-line">
      {props.choices.map((one) => (
        <button
          key={one.id}
          type="button"
          aria-pressed={one.id === props.chosen}
          onClick={() => props.onChoose(one.id)}
          className="h-6 rounded-md px-1.5 text-xs text-ink-soft hover:text-ink aria-pressed:bg-accent-soft aria-pressed:text-accent"
        >
          {one.name}
        </button>
      ))}
    </fieldset>
  );
}
