import type { CommandError, Host, KioskEvent, TaskOrder, TaskView } from "./host";
declare global {
    interface Window {
        /** What a test may do in the shell's stead. */
        shell?: Shell;
    }
}
export interface Shell {
    emit: (event: KioskEvent) => void;
    /** Commands in the order in which the screen gave them; of an attempt only its order. */
    calls: string[];
    /** The next command of this name is refused with this error. */
    refuseNext: (command: string, error: CommandError) => void;
    tasks: TaskView[];
    orders: TaskOrder[];
}
export declare function browserHost(): Host;
