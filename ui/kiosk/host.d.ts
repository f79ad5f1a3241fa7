import type { components } from "./host-types";
type Schemas = components["schemas"];
export type KioskInfo = Schemas["KioskInfo"];
export type KioskEvent = Schemas["KioskEvent"];
export type TaskView = Schemas["TaskView"];
export type TaskOrder = Schemas["TaskOrder"];
export type Settings = Schemas["Settings"];
export type SourceChoice = Schemas["SourceChoice"];
export type CommandError = Schemas["CommandError"];
export type Camera = Extract<SourceChoice, {
    kind: "camera";
}>;
/** A frame of the live picture. */
export interface Frame {
    seq: number;
    jpeg: Uint8Array<ArrayBuffer>;
}
/** The shell. Its promises are rejected with a {@link CommandError}. */
export interface Host {
    info(): Promise<KioskInfo>;
    /** How things stand (session, link, source), then what happens, in the order in which it happens. */
    subscribe(on: (event: KioskEvent) => void): Promise<void>;
    /** Today's tasks of the guide who is signed in. */
    tasks(): Promise<TaskView[]>;
    taskOrders(taskNo: string): Promise<TaskOrder[]>;
    /** The answer comes as the events `reading` and `outcome`. */
    redeemByHand(orderNo: string, verifyCode: string): Promise<void>;
    cameras(): Promise<Camera[]>;
    chooseSource(choice: SourceChoice): Promise<void>;
    saveSettings(settings: Settings): Promise<void>;
    signIn(link: string): Promise<void>;
    signOut(): Promise<void>;
    openVisitorPage(orderNo: string): Promise<void>;
    /** The newest frame, if there is a newer one than `after`. */
    nextPreview(after: number): Promise<Frame | null>;
}
/** What a rejected command carries; anything else that is thrown is the app's own fault. */
export declare function commandError(fault: unknown): CommandError;
/** Takes a frame off the wire: its number in eight bytes, little-endian, then the JPEG; empty for none. */
export declare function readFrame(raw: ArrayBuffer): Frame | null;
/** The shell this page runs in; `null` in a bare browser, where nothing can be redeemed. */
export declare function findHost(): Promise<Host | null>;
export {};
