import java.lang.ref.SoftReference;
import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** A small heap of known shape, for jmap to dump and count. Says READY and waits for its input to end. */
public class Planted {
  static class Listener {
    byte[] payload = new byte[10_000];
    int id;
    Listener(int id) { this.id = id; }
  }
  static class Base { boolean z; long j; Object held; }
  static class Middle extends Base { byte b; short s; }
  static class Derived extends Middle { char c; int i; double d; float f; boolean last; Object more; }
  static class Statics { static boolean z = true; static long j = 42; static Object o = "o"; static byte b = 1; static int i = 2; static double d = 3; static short s = 4; }
  static class Node { Node next; Node(Node next) { this.next = next; } }
  static class Имя { String поле = "утечка \uD83D\uDCA7"; }

  static final List<Listener> REGISTRY = new ArrayList<>(64);
  static Node chain;
  static final Map<String, Object> MAP = new HashMap<>();
  static WeakReference<Object> weak;
  static SoftReference<Object> soft;
  static final ThreadLocal<byte[]> LOCAL = new ThreadLocal<>();

  public static void main(String[] args) throws Exception {
    for (int i = 0; i < 64; i++) REGISTRY.add(new Listener(i));
    for (int i = 0; i < 5_000; i++) chain = new Node(chain);
    for (int i = 0; i < 300; i++) MAP.put("key " + i, i % 2 == 0 ? new Derived() : new long[i]);
    MAP.put("statics", new Statics());
    MAP.put("name", new Имя());
    MAP.put("arrays", new Object[] {new boolean[3], new char[5], new float[7], new double[9], new short[11], new int[13], new int[2][3]});
    Derived target = new Derived();
    weak = new WeakReference<>(target);
    soft = new SoftReference<>(new byte[7_777]);
    LOCAL.set(new byte[12_345]);
    System.out.println("READY " + ProcessHandle.current().pid());
    System.out.flush();
    while (System.in.read() != -1) { }
    System.out.println(target.last + " " + Statics.z);
  }
}
